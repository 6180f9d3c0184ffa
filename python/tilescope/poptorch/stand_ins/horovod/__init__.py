"""``horovod``: one process here stands for all."""
