SELECT * FROM steps
SELECT * FROM steps_by_ipu
SELECT * FROM marks ORDER BY id
SELECT * FROM execution_cycle_totals
SELECT rowid AS row, id FROM steps WHERE id IN (4, 4095, 4096, 5999, 6000, -1)
SELECT count(*), min(id), max(id) FROM steps
SELECT count(*) FROM steps WHERE id > 17.5 AND id <= 4100
SELECT count(*) FROM steps WHERE program = 2
SELECT id FROM steps WHERE program = 4 AND id BETWEEN 100 AND 300
SELECT id FROM steps WHERE program IN (1, 3) ORDER BY id DESC LIMIT 20
SELECT id FROM steps WHERE program = 99 OR program < 0
SELECT id FROM steps WHERE program = '2' LIMIT 9
SELECT type, count(*), max(compute_set) FROM steps GROUP BY type ORDER BY type
SELECT * FROM steps_by_ipu WHERE step_id = 4096
SELECT * FROM steps_by_ipu WHERE step_id >= 4090 AND step_id < 4100 AND ipu = 1
SELECT * FROM steps_by_ipu WHERE ipu = 0 AND sub_lane = 1 ORDER BY step_id
SELECT ipu, count(*), sum(cycles), avg(tile_balance) FROM steps_by_ipu GROUP BY ipu ORDER BY ipu
SELECT step_id, ipu FROM steps_by_ipu WHERE cycles_base >= 100000 ORDER BY step_id, ipu, sub_lane
SELECT step_id FROM steps_by_ipu WHERE cycles_base BETWEEN 5000 AND 5400 ORDER BY cycles_base, step_id, ipu
SELECT ipu, step_id FROM steps_by_ipu WHERE cycles = (SELECT max(cycles) FROM steps_by_ipu) ORDER BY 1, 2
SELECT p.name, sum(b.cycles), sum(b.bytes_in) FROM steps_by_ipu b JOIN steps s ON s.id = b.step_id JOIN programs p ON p.id = s.program GROUP BY p.name ORDER BY 2 DESC, 1
SELECT m.number, count(*), sum(b.cycles) FROM marks m JOIN steps_by_ipu b ON b.step_id >= m.first_step AND b.step_id < m.end_step WHERE m.kind = 'iteration' GROUP BY m.number ORDER BY m.number
SELECT s.id, b.ipu FROM steps s LEFT JOIN steps_by_ipu b ON b.step_id = s.id AND b.ipu = 1 WHERE s.id < 50 ORDER BY s.id, b.ipu, b.sub_lane
SELECT a.id FROM steps a JOIN steps b ON b.id = a.id + 1 AND b.program = a.program ORDER BY a.id LIMIT 50
SELECT kind, count(*), sum(end_cycle - first_cycle) FROM marks GROUP BY kind ORDER BY kind
SELECT id FROM marks WHERE ipu = 1 AND first_cycle >= 20000 ORDER BY id
SELECT id FROM marks WHERE ipu IS NULL AND end_cycle < 90000 ORDER BY id
SELECT id FROM marks WHERE kind = 'stage' AND first_cycle < 60000 AND end_cycle > 30000 ORDER BY id
SELECT step_id, cycles FROM steps_by_ipu WHERE NULL = ipu OR step_id < 3 ORDER BY 1, 2
WITH busy AS (SELECT step_id, sum(cycles) AS c FROM steps_by_ipu GROUP BY step_id) SELECT s.type, max(busy.c) FROM busy JOIN steps s ON s.id = busy.step_id GROUP BY s.type ORDER BY 1
SELECT * FROM program_cycles ORDER BY ipu, sub_lane, program, type
SELECT * FROM program_cycles(1000, 50000) ORDER BY ipu, sub_lane, program, type
SELECT * FROM activity_cycles(777, 99999)
SELECT * FROM steps_between(5000, 6000)
SELECT count(*) FROM steps_between(0, 1) WHERE ipu = 1
SELECT m.number, c.name, sum(c.cycles) FROM marks m, program_cycles(m.first_cycle, m.end_cycle) c WHERE m.kind = 'iteration' GROUP BY 1, 2 ORDER BY 1, 2
