//! Tests sync points, and the slack derived from them, against a run that is simulated again with
//! each step made longer.

use super::super::answers::FixedPointBalance;
use super::super::lane_number::LaneNumber;
use super::super::step_record::{StepClass, StepRecord};
use super::point::{
    LaneHandOver, LanePlace, StretchSums, SyncPoint, SyncPointBlock, SyncPointKind, decode,
};
use super::*;
use crate::codec::pack;
use crate::model::{ProgramKind, StreamEndpoint};
use crate::units::{
    Bytes, CycleRange, Cycles, IpuId, ProgramId, ReplicaClassId, ReplicaIpu, StepId,
};
use proptest::prelude::*;
use tilescope_test_tiers::cases;

/// The next action of a small machine.
#[derive(Clone, Debug)]
enum Order {
    Work {
        ipu: usize,
        io: bool,
        cycles: u64,
    },
    /// The IPUs in the bit mask sync, on one of both kinds of tiles.
    Sync {
        ipus: usize,
        io: bool,
        cost: u64,
    },
    IoWaits {
        ipu: usize,
    },
    ComputeWaits {
        ipu: usize,
    },
}

const IPUS: usize = 3;
/// Longer than any run of the tests.
const LONG: u64 = 1 << 30;

#[derive(Clone, Debug)]
struct RanStep {
    lane: usize,
    position: u64,
    record: StepRecord,
}

/// Lanes are numbered by IPU, then kind of tiles.
fn lane(ipu: usize, io: bool) -> usize {
    ipu * 2 + usize::from(io)
}

/// Runs `orders`, with the end of one step, given by number, delayed by [`LONG`].
fn run(
    orders: &[Order],
    late: Option<usize>,
    mut recorder: Option<&mut Recording>,
) -> (Vec<RanStep>, u64) {
    let mut clocks = [0u64; IPUS * 2];
    let mut steps: Vec<RanStep> = Vec::new();
    let mut positions = [0u64; IPUS * 2];
    let mut number = 0;
    let mut step = |lane: usize,
                    kind,
                    program,
                    range: (u64, u64),
                    id: u64,
                    recorder: &mut Option<&mut Recording>| {
        let record = StepRecord {
            step: StepId(id),
            range: CycleRange::new(Cycles(range.0), Cycles(range.1)),
            program: Some(ProgramId(program)),
            class: StepClass::new(kind, StreamEndpoint::Host),
            balance: FixedPointBalance::from_share(1.0),
            bytes_in: Bytes::ZERO,
            bytes_out: Bytes::ZERO,
        };
        steps.push(RanStep { lane, position: positions[lane], record });
        positions[lane] += 1;
        if let Some(recorder) = recorder {
            recorder.step(lane, &record);
        }
    };
    let mut made = 0;
    let mut extra = |parts: usize| {
        let own = late.is_some_and(|late| (made..made + parts).contains(&late));
        made += parts;
        if own { LONG } else { 0 }
    };
    for order in orders {
        match *order {
            Order::Work { ipu, io, cycles } => {
                let (lane, start) = (lane(ipu, io), clocks[lane(ipu, io)]);
                clocks[lane] += cycles + extra(1);
                let program = u32::try_from(lane).unwrap();
                let kind = ProgramKind::OnTileExecute;
                step(lane, kind, program, (start, clocks[lane]), number, &mut recorder);
            }
            Order::Sync { ipus, io, cost } => {
                let members: Vec<usize> =
                    (0..IPUS).filter(|ipu| ipus >> ipu & 1 == 1).map(|ipu| lane(ipu, io)).collect();
                if members.is_empty() {
                    continue;
                }
                let last = members.iter().map(|lane| clocks[*lane]).max().unwrap();
                let release = last + cost + extra(members.len());
                for lane in members {
                    let start = std::mem::replace(&mut clocks[lane], release);
                    step(lane, ProgramKind::Sync, 100, (start, release), number, &mut recorder);
                }
            }
            Order::IoWaits { ipu } => {
                clocks[lane(ipu, true)] = clocks[lane(ipu, true)].max(clocks[lane(ipu, false)]);
                if let Some(recorder) = &mut recorder {
                    recorder.recorder.hand_over(on(ipu), 0, 1);
                }
                continue;
            }
            Order::ComputeWaits { ipu } => {
                if let Some(recorder) = &mut recorder {
                    recorder.recorder.hand_over(on(ipu), 1, 0);
                }
                let (start, io) = (clocks[lane(ipu, false)], clocks[lane(ipu, true)]);
                if io <= start {
                    continue;
                }
                // A step that exists only if it waits has no number and is not delayed.
                clocks[lane(ipu, false)] = io;
                let own = lane(ipu, false);
                step(own, ProgramKind::Sync, 101, (start, io), number, &mut recorder);
            }
        }
        number += 1;
    }
    let end = clocks.iter().copied().max().unwrap();
    (steps, end)
}

fn on(ipu: usize) -> ReplicaIpu {
    ReplicaIpu { class: ReplicaClassId(0), ipu: IpuId(ipu as u32) }
}

/// A recorder, and the lanes that have steps.
struct Recording {
    recorder: SyncPointRecorder,
    lanes: Vec<(usize, LaneIndex, CycleRange)>,
}

impl Recording {
    fn new() -> Self {
        let mut internal = SyncPrograms::default();
        internal.add(ProgramId(101));
        Self { recorder: SyncPointRecorder::new(internal), lanes: Vec::new() }
    }

    fn step(&mut self, lane: usize, record: &StepRecord) {
        let known = self.lanes.iter().position(|(own, ..)| *own == lane);
        let at = known.unwrap_or_else(|| {
            let index = self.recorder.add_lane(number_of(lane));
            self.lanes.push((lane, index, record.range));
            self.lanes.len() - 1
        });
        let (_, index, range) = &mut self.lanes[at];
        *range = range.union(record.range);
        self.recorder.push(*index, record);
    }

    /// The lanes in order, and all blocks.
    fn finish(mut self) -> (Vec<(usize, CycleRange)>, Vec<Vec<u8>>) {
        self.lanes.sort_by_key(|(lane, ..)| *lane);
        let lanes = self.lanes.iter().map(|(lane, _, range)| (*lane, *range)).collect();
        let mut blocks: Vec<Vec<u8>> = self.recorder.complete().collect();
        blocks.extend(self.recorder.finish().0);
        (lanes, blocks)
    }
}

fn places(lanes: &[(usize, CycleRange)]) -> LanePlaces {
    let number = |lane: usize| number_of(lane).number();
    lanes.iter().enumerate().map(|(place, (lane, _))| (number(*lane), place)).collect()
}

fn check(orders: &[Order]) {
    let mut recording = Recording::new();
    let (steps, end) = run(orders, None, Some(&mut recording));
    if steps.is_empty() {
        return;
    }
    let (lanes, blocks) = recording.finish();
    let places = places(&lanes);
    let ranges: Vec<CycleRange> = lanes.iter().map(|(_, range)| *range).collect();
    let starts: Vec<Cycles> = ranges.iter().map(|range| range.start).collect();
    let points: Vec<_> = blocks.iter().map(|raw| decode(&pack(raw)).expect("sound")).collect();
    let mut builder = PathIndexBuilder::new(&ranges);
    for points in points.iter().rev() {
        builder.block(points, &places).expect("consistent");
    }
    let index = builder.finish(&starts).expect("consistent");
    let details: Vec<BlockDetails> = (0..points.len())
        .map(|block| index.details(block, &points[block], &places).expect("consistent"))
        .collect();

    let mut reader = PathIndexReader::new(&ranges);
    for raw in path_file::pieces(&index) {
        reader.piece(&unpack_path(&pack(&raw)).expect("packed")).expect("a sound piece");
    }
    assert_eq!(reader.finish(points.len() as u64), Some(index.clone()), "as it was written");

    // The path goes through the run without a gap.
    let stretches: Vec<_> =
        index.first.iter().chain(details.iter().flat_map(|block| &block.stretches)).collect();
    assert_eq!(stretches.len() as u64, index.stretches);
    let start = starts.iter().copied().min().unwrap();
    let ends = stretches.first().zip(stretches.last());
    // A run that takes no time has no path.
    assert_eq!(ends.is_some(), Cycles(end) > start);
    if let Some((first, last)) = ends {
        assert_eq!((first.range.start, last.range.end), (start, Cycles(end)));
    }
    for pair in stretches.windows(2) {
        assert_eq!(pair[0].range.end, pair[1].range.start);
        assert_ne!(pair[0].lane, pair[1].lane, "a hop leads to another lane");
    }
    // Its sums are those of the parts of its steps.
    for stretch in &stretches {
        let of_lane = steps.iter().filter(|step| step.lane == lanes[stretch.lane].0);
        let parts = of_lane.map(|step| step.record.range.intersection(stretch.range).length());
        assert_eq!(stretch.totals.cycles.total(), parts.sum::<Cycles>(), "{stretch:?}");
    }
    assert!(index.totals.cycles.total() <= index.range.length());

    // Slack is the delay that a step can have, found by running everything again.
    let mut number = 0;
    for step in &steps {
        let (place, limit) = (places[&number_of(step.lane).number()], step.position);
        let block = index.blocks.iter().position(|block| block.limits[place] > limit).unwrap();
        let slack = details[block].slack(place, step.position).expect("recorded");
        if step.record.program == Some(ProgramId(101)) {
            continue;
        }
        let (_, late_end) = run(orders, Some(number), None);
        number += 1;
        assert_eq!(slack.0, LONG - (late_end - end), "slack of {step:?}");
        let range = step.record.range;
        let on_path = stretches
            .iter()
            .any(|stretch| lanes[stretch.lane].0 == step.lane && stretch.range.overlaps(range));
        if on_path {
            assert_eq!(slack, Cycles::ZERO, "{step:?} is on the path");
        }
    }
}

fn number_of(lane: usize) -> LaneNumber {
    LaneNumber::new(ReplicaClassId(0), IpuId(lane as u32 / 2), (lane % 2) as u8)
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![
        4 => (0..IPUS, any::<bool>(), 0u64..50)
            .prop_map(|(ipu, io, cycles)| Order::Work { ipu, io, cycles }),
        2 => (1usize..1 << IPUS, prop::bool::weighted(0.2), 1u64..9)
            .prop_map(|(ipus, io, cost)| Order::Sync { ipus, io, cost }),
        1 => (0..IPUS).prop_map(|ipu| Order::IoWaits { ipu }),
        1 => (0..IPUS).prop_map(|ipu| Order::ComputeWaits { ipu }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(500), ..ProptestConfig::default() })]

    #[test]
    fn slack_is_the_delay_that_a_step_allows(orders in prop::collection::vec(order(), 1..60)) {
        check(&orders);
    }

    #[test]
    fn hostile_path_pieces_are_refused_or_read(
        orders in prop::collection::vec(order(), 1..40),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut recording = Recording::new();
        let (steps, _) = run(&orders, None, Some(&mut recording));
        prop_assume!(!steps.is_empty());
        let (lanes, blocks) = recording.finish();
        let ranges: Vec<CycleRange> = lanes.iter().map(|(_, range)| *range).collect();
        let starts: Vec<Cycles> = ranges.iter().map(|range| range.start).collect();
        let mut builder = PathIndexBuilder::new(&ranges);
        for raw in blocks.iter().rev() {
            builder.block(&decode(&pack(raw)).unwrap(), &places(&lanes)).unwrap();
        }
        let mut pieces: Vec<Vec<u8>> = path_file::pieces(&builder.finish(&starts).unwrap()).collect();
        for (at, byte) in changes {
            let place = at.index(pieces.len());
            let inner = at.index(pieces[place].len());
            pieces[place][inner] = byte;
        }
        let mut reader = PathIndexReader::new(&ranges);
        if pieces.iter().all(|raw| reader.piece(raw).is_some()) {
            let _ = reader.finish(blocks.len() as u64);
        }
    }

    #[test]
    fn hostile_points_are_refused_or_walked(raw in prop::collection::vec(any::<u8>(), 0..200)) {
        let lanes = [CycleRange::new(Cycles(0), Cycles(100)); 3];
        let places = (0..3).map(|lane| (lane, lane as usize)).collect();
        if let Some(points) = decode(&pack(&raw)) {
            let mut builder = PathIndexBuilder::new(&lanes);
            if builder.block(&points, &places).is_ok() {
                let _ = builder.finish(&[Cycles::ZERO; 3]);
            }
        }
    }
}

/// The index of orders that give one block of points, on lanes that begin at 0.
fn path_index(orders: &[Order]) -> PathIndex {
    let mut recording = Recording::new();
    run(orders, None, Some(&mut recording));
    let (lanes, blocks) = recording.finish();
    let ranges: Vec<CycleRange> = lanes.iter().map(|(_, range)| *range).collect();
    let mut builder = PathIndexBuilder::new(&ranges);
    builder.block(&decode(&pack(&blocks[0])).unwrap(), &places(&lanes)).unwrap();
    builder.finish(&vec![Cycles::ZERO; lanes.len()]).unwrap()
}

#[test]
fn the_path_continues_on_the_lane_that_arrived_last() {
    // IPU 1 is last at the first sync, IPU 0 at the second.
    let orders = [
        Order::Work { ipu: 0, io: false, cycles: 10 },
        Order::Work { ipu: 1, io: false, cycles: 40 },
        Order::Sync { ipus: 3, io: false, cost: 2 },
        Order::Work { ipu: 0, io: false, cycles: 30 },
        Order::Work { ipu: 1, io: false, cycles: 5 },
        Order::Sync { ipus: 3, io: false, cost: 2 },
        Order::Work { ipu: 1, io: false, cycles: 7 },
    ];
    check(&orders);
    let index = path_index(&orders);
    let path: Vec<u64> = index.lanes.iter().map(|lane| lane.path_cycles.0).collect();
    assert_eq!(path, [32, 49], "b, the first sync; d, the second one; g");
    let waits: Vec<u64> = index.lanes.iter().map(|lane| lane.waits.0).collect();
    assert_eq!(waits, [30 + 7, 25]);
    let leads: Vec<u64> = index.lanes.iter().map(|lane| lane.lead.0).collect();
    assert_eq!(leads, [25, 30 + 7]);
}

#[test]
fn of_simultaneous_arrivals_the_path_continues_on_the_first_lane() {
    let orders = [
        Order::Work { ipu: 0, io: false, cycles: 10 },
        Order::Work { ipu: 1, io: false, cycles: 10 },
        Order::Work { ipu: 2, io: false, cycles: 10 },
        Order::Sync { ipus: 7, io: false, cost: 2 },
        Order::Work { ipu: 0, io: false, cycles: 5 },
        Order::Work { ipu: 1, io: false, cycles: 5 },
    ];
    check(&orders);
    let index = path_index(&orders);
    let path: Vec<u64> = index.lanes.iter().map(|lane| lane.path_cycles.0).collect();
    assert_eq!(path, [17, 0, 0]);
}

/// Steps of a damaged file may begin after the end of later ones.
#[test]
fn a_stretch_that_starts_after_its_release_is_written() {
    let hand_over = LaneHandOver {
        number: 0,
        from: 0,
        to: LanePlace { lane: 1, behind: 3 },
        lag: Cycles(1),
        wait: Cycles(1),
        in_step: false,
    };
    let point = SyncPoint {
        release: Cycles(10),
        kind: SyncPointKind::HandOver(hand_over),
        stretch: Some(StretchSums::empty(Cycles(25))),
    };
    let mut block = SyncPointBlock::default();
    block.add(&point);
    let found = decode(&pack(&block.take())).expect("a sound block");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].stretch, Some(StretchSums::empty(Cycles(10))));
}
