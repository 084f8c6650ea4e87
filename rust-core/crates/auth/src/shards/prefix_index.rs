/// Maps digest prefixes to the shards with entries of that prefix; immutable after construction.
#[derive(Debug, Default)]
pub(super) struct PrefixIndex {
    /// The first eight bytes of every digest of all shards, in ascending order.
    prefixes: Box<[u64]>,
    /// The shard of each prefix, in the same order. Equal prefixes are ordered by shard number.
    shards: Box<[u8]>,
}

impl PrefixIndex {
    /// Creates an index from the sorted prefixes of each shard, in the order of the shard numbers.
    pub(super) fn new<'p>(parts: impl Iterator<Item = &'p [u64]>) -> Self {
        let mut entries: Vec<(u64, u8)> = (0_u8..)
            .zip(parts)
            .flat_map(|(shard, prefixes)| prefixes.iter().map(move |prefix| (*prefix, shard)))
            .collect();
        // The stable sort detects the sorted runs and merges them.
        entries.sort();
        let (prefixes, shards): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
        PrefixIndex {
            prefixes: prefixes.into(),
            shards: shards.into(),
        }
    }

    /// Returns the numbers of the shards with an entry of this prefix, in ascending order.
    #[inline]
    pub(super) fn shards_with_prefix(&self, wanted: u64) -> impl Iterator<Item = usize> + '_ {
        let first = self.prefixes.partition_point(|prefix| *prefix < wanted);
        self.prefixes[first..]
            .iter()
            .zip(&self.shards[first..])
            .take_while(move |(prefix, _)| **prefix == wanted)
            .map(|(_, shard)| usize::from(*shard))
    }
}
