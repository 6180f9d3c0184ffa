//! `profile.capnp` files of ipu-stack, built for tests with a separate writer of the wire format,
//! so that the reader is not tested against itself.

/// Kinds of samples, by their number in the file.
pub const EXCHANGE: u16 = 0;
pub const COMPUTE: u16 = 1;
pub const SYNCHRONIZATION: u16 = 2;
pub const IDLE: u16 = 3;

/// A sample of a tile.
#[derive(Clone, Debug, Default)]
pub struct ProfileSample {
    pub local_index: u32,
    pub phase: u32,
    pub epoch: u32,
    pub kind: u16,
    pub operation: String,
    pub kernel: String,
    pub metadata: Vec<(String, String)>,
    /// Kind (0 send, 1 receive, 2 partner busy), start and end in the exchange.
    pub activities: Vec<(u16, u32, u32)>,
    pub exchange_cycles: u32,
    /// The 32-bit counter.
    pub start: u32,
    pub end: u32,
}

/// A profile.
#[derive(Clone, Debug)]
pub struct IpuStackProfile {
    pub version: u32,
    pub clock_hz: u64,
    /// Physical number and samples of each tile.
    pub tiles: Vec<(u32, Vec<ProfileSample>)>,
    /// Words of a segment before the next one begins; a message has as many segments as it needs.
    pub segment_words: usize,
}

impl Default for IpuStackProfile {
    fn default() -> Self {
        Self { version: 5, clock_hz: 1_000_000_000, tiles: Vec::new(), segment_words: 1 << 14 }
    }
}

/// Words that a profile is short of in the names of `layers` and `tiles`: see
/// [`IpuStackProfile::layers`].
const KERNELS: [&str; 3] = ["gemm_f16_amp", "softmax_f16", "gelu_f16"];

impl IpuStackProfile {
    /// A profile of this number of tiles and layers, each layer a barrier, an exchange and compute.
    /// Cycles come from a formula, not from measurements. Tiles leave a barrier together, after the
    /// last one arrives.
    pub fn layers(tiles: u32, layers: u32) -> Self {
        let mut profile = Self::default();
        let mut arrived: Vec<u32> = (0..tiles).map(|tile| 1 + tile * 7 % 40).collect();
        profile.tiles = (0..tiles).map(|tile| (tile * 1471 / tiles.max(2), Vec::new())).collect();
        for layer in 0..layers {
            let leave = arrived.iter().max().copied().unwrap_or(0) + 60;
            let operation =
                format!("layer{}/{}", layer / 3, ["qkv", "softmax", "gelu"][layer as usize % 3]);
            for (tile, (_, samples)) in profile.tiles.iter_mut().enumerate() {
                let tile = tile as u32;
                let sample = |kind, place: u32, (start, end)| ProfileSample {
                    local_index: 3 * layer + place,
                    phase: 2 * layer + u32::from(kind == COMPUTE),
                    kind,
                    operation: operation.clone(),
                    start,
                    end,
                    ..ProfileSample::default()
                };
                let exchanged = leave + 200 + tile * 13 % 90;
                let computed = exchanged + 900 + (tile * 31 + layer * 17) % 300;
                let at = &mut arrived[tile as usize];
                samples.push(sample(SYNCHRONIZATION, 0, (*at, leave)));
                samples.push(ProfileSample {
                    metadata: vec![("region".to_owned(), "encoder".to_owned())],
                    activities: vec![(1, 20, 150 + tile % 30), (0, 10, 100)],
                    exchange_cycles: exchanged - leave,
                    ..sample(EXCHANGE, 1, (leave, exchanged))
                });
                samples.push(ProfileSample {
                    kernel: KERNELS[layer as usize % 3].to_owned(),
                    metadata: vec![
                        ("rows".to_owned(), "16".to_owned()),
                        ("M".to_owned(), (32 + layer % 5).to_string()),
                    ],
                    ..sample(COMPUTE, 2, (exchanged, computed))
                });
                *at = computed;
            }
        }
        profile
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut message = MessageWriter::new(self.segment_words);
        let root = message.allocate(1);
        let profile = message.structure(root, 2, 1);
        message.number(profile, 0, self.version.into(), 4);
        message.number(profile, 8, self.clock_hz, 8);
        let tiles = message.structs(profile.pointer(0), self.tiles.len(), 1, 1);
        for ((number, samples), tile) in self.tiles.iter().zip(tiles) {
            message.number(tile, 0, (*number).into(), 4);
            let places = message.structs(tile.pointer(0), samples.len(), 1, 1);
            for (sample, place) in samples.iter().zip(places) {
                message.sample(sample, place);
            }
        }
        message.finish()
    }
}

/// A struct in the message: its segment, first word and words of data.
#[derive(Clone, Copy)]
struct Place {
    segment: usize,
    at: usize,
    data: usize,
}

impl Place {
    fn pointer(self, place: usize) -> (usize, usize) {
        (self.segment, self.at + self.data + place)
    }
}

/// A message that grows, segment by segment.
struct MessageWriter {
    segments: Vec<Vec<u64>>,
    segment_words: usize,
}

impl MessageWriter {
    fn new(segment_words: usize) -> Self {
        Self { segments: vec![Vec::new()], segment_words }
    }

    /// Allocates adjacent words.
    fn allocate(&mut self, words: usize) -> (usize, usize) {
        let last = self.segments.last().map_or(0, Vec::len);
        if last > 0 && last + words > self.segment_words {
            self.segments.push(Vec::new());
        }
        let segment = self.segments.len() - 1;
        let at = self.segments[segment].len();
        self.segments[segment].resize(at + words, 0);
        (segment, at)
    }

    /// Writes a pointer at `from` to words of this `kind`.
    fn point(&mut self, from: (usize, usize), to: (usize, usize), kind: u64) {
        let near = |from: usize, to: usize| {
            let offset = (to as i64 - from as i64 - 1) as u32;
            kind | u64::from(offset << 2)
        };
        if from.0 == to.0 {
            self.segments[from.0][from.1] = near(from.1, to.1);
            return;
        }
        // A landing pad beside the object, if its segment has not grown since; otherwise two words
        // with the object's segment.
        let last = self.segments.len() - 1;
        let far = |segment: usize, at: usize, double: u64| {
            2 | double << 2 | (at as u64) << 3 | (segment as u64) << 32
        };
        if last == to.0 {
            let pad = self.segments[last].len();
            self.segments[last].push(0);
            self.segments[last][pad] = near(pad, to.1);
            self.segments[from.0][from.1] = far(last, pad, 0);
        } else {
            let (segment, pad) = self.allocate(2);
            self.segments[segment][pad] = far(to.0, to.1, 0);
            self.segments[segment][pad + 1] = kind;
            self.segments[from.0][from.1] = far(segment, pad, 1);
        }
    }

    fn structure(&mut self, from: (usize, usize), data: usize, pointers: usize) -> Place {
        let (segment, at) = self.allocate(data + pointers);
        let kind = (data as u64) << 32 | (pointers as u64) << 48;
        self.point(from, (segment, at), kind);
        Place { segment, at, data }
    }

    fn structs(
        &mut self,
        from: (usize, usize),
        count: usize,
        data: usize,
        pointers: usize,
    ) -> Vec<Place> {
        if count == 0 {
            return Vec::new();
        }
        let words = count * (data + pointers);
        let (segment, tag) = self.allocate(1 + words);
        self.segments[segment][tag] =
            (count as u64) << 2 | (data as u64) << 32 | (pointers as u64) << 48;
        self.point(from, (segment, tag), 1 | 7 << 32 | (words as u64) << 35);
        let at = |place| tag + 1 + place * (data + pointers);
        (0..count).map(|place| Place { segment, at: at(place), data }).collect()
    }

    fn text(&mut self, from: (usize, usize), text: &str) {
        if text.is_empty() {
            return;
        }
        let bytes = [text.as_bytes(), &[0]].concat();
        let (segment, at) = self.allocate(bytes.len().div_ceil(8));
        for (place, chunk) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.segments[segment][at + place] = u64::from_le_bytes(word);
        }
        self.point(from, (segment, at), 1 | 2 << 32 | (bytes.len() as u64) << 35);
    }

    /// Writes a number of `bytes` bytes into the data of a struct.
    fn number(&mut self, place: Place, byte: usize, number: u64, bytes: usize) {
        let word = &mut self.segments[place.segment][place.at + byte / 8];
        debug_assert!(byte % 8 + bytes <= 8, "numbers do not cross words");
        *word |= number << (8 * (byte % 8));
    }

    fn sample(&mut self, sample: &ProfileSample, place: Place) {
        self.number(place, 0, sample.start.into(), 4);
        self.number(place, 4, sample.end.into(), 4);
        let step = self.structure(place.pointer(0), 3, 4);
        self.number(step, 0, sample.local_index.into(), 4);
        self.number(step, 4, sample.phase.into(), 4);
        self.number(step, 8, sample.epoch.into(), 4);
        self.number(step, 12, sample.kind.into(), 2);
        self.number(step, 16, sample.exchange_cycles.into(), 4);
        self.text(step.pointer(0), &sample.operation);
        self.text(step.pointer(1), &sample.kernel);
        let pairs = self.structs(step.pointer(2), sample.metadata.len(), 0, 2);
        for ((name, value), pair) in sample.metadata.iter().zip(pairs) {
            self.text(pair.pointer(0), name);
            self.text(pair.pointer(1), value);
        }
        let activities = self.structs(step.pointer(3), sample.activities.len(), 2, 0);
        for ((kind, start, end), activity) in sample.activities.iter().zip(activities) {
            self.number(activity, 0, (*kind).into(), 2);
            self.number(activity, 4, (*start).into(), 4);
            self.number(activity, 8, (*end).into(), 4);
        }
    }

    fn finish(self) -> Vec<u8> {
        let count = self.segments.len();
        let sizes = self.segments.iter().map(|words| words.len() as u32);
        let mut header: Vec<u32> = std::iter::once(count as u32 - 1).chain(sizes).collect();
        if header.len() % 2 == 1 {
            header.push(0);
        }
        let words = self.segments.iter().flatten().flat_map(|word| word.to_le_bytes());
        header.iter().flat_map(|number| number.to_le_bytes()).chain(words).collect()
    }
}
