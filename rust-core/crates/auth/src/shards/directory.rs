/// Which shards hold what has a digest that begins so; built once, never changed.
#[derive(Debug, Default)]
pub(super) struct PrefixIndex {
    /// The first eight bytes of every digest of all shards, ascending.
    prefixes: Box<[u64]>,
    /// The shard of each, in the same order. Of equal ones the lower number comes first.
    shards: Box<[u8]>,
}

impl PrefixIndex {
    /// From the prefixes of each shard, each sorted, in the order of the shards' numbers.
    pub(super) fn new<'p>(parts: impl Iterator<Item = &'p [u64]>) -> Self {
        let mut entries: Vec<(u64, u8)> = (0_u8..)
            .zip(parts)
            .flat_map(|(shard, prefixes)| prefixes.iter().map(move |prefix| (*prefix, shard)))
            .collect();
        // The stable sort takes the sorted runs as they are and merges them.
        entries.sort();
        let (prefixes, shards): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
        PrefixIndex {
            prefixes: prefixes.into(),
            shards: shards.into(),
        }
    }

    /// The numbers of the shards that hold something with this prefix, ascending.
    #[inline]
    pub(super) fn shards_of(&self, wanted: u64) -> impl Iterator<Item = usize> + '_ {
        let first = self.prefixes.partition_point(|prefix| *prefix < wanted);
        self.prefixes[first..]
            .iter()
            .zip(&self.shards[first..])
            .take_while(move |(prefix, _)| **prefix == wanted)
            .map(|(_, shard)| usize::from(*shard))
    }
}
