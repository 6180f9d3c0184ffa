"""``horovod``: this process simulates all processes."""
