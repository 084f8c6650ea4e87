//! Names of tiles and bundles, and the tiles of a log of a given size (c2sp.org/tlog-tiles).

use proofgate_ledger::{Hash, leaf_position};

/// Number of hashes in a full tile, and number of entries in a full bundle.
pub const WIDTH: u64 = 256;
/// Number of tree levels that one level of tiles spans.
const HEIGHT: u32 = 8;
/// Number of tile levels in a log of 2^64 entries.
pub(crate) const LEVELS: u32 = 8;

/// A tile of hashes, or a bundle of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// The level of tiles; `None` for a bundle of entries.
    pub level: Option<u32>,
    /// Number of the tile in its level.
    pub index: u64,
    /// Number of hashes or entries: 1 to [`WIDTH`].
    pub width: u64,
}

impl Tile {
    /// Returns the path of the tile: `tile/<level>/<index>` or `tile/entries/<index>`, followed by
    /// `.p/<width>` unless the tile is full.
    #[must_use]
    pub fn path(&self) -> String {
        let mut number = format!("{:03}", self.index % 1000);
        let mut rest = self.index / 1000;
        while rest > 0 {
            number = format!("x{:03}/{number}", rest % 1000);
            rest /= 1000;
        }
        let level = match self.level {
            Some(level) => level.to_string(),
            None => "entries".to_owned(),
        };
        match self.width {
            WIDTH => format!("tile/{level}/{number}"),
            width => format!("tile/{level}/{number}.p/{width}"),
        }
    }

    /// Parses a path; `None` for a path that [`Self::path`] would not return.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let (level, rest) = path.strip_prefix("tile/")?.split_once('/')?;
        let level = match level {
            "entries" => None,
            level => Some(level.parse().ok().filter(|level| *level < LEVELS)?),
        };
        let (number, width) = match rest.split_once(".p/") {
            Some((number, width)) => (number, width.parse().ok().filter(|width| *width < WIDTH)?),
            None => (rest, WIDTH),
        };
        let mut index: u64 = 0;
        for part in number.split('/') {
            let digits = part.strip_prefix('x').unwrap_or(part);
            index = index.checked_mul(1000)?.checked_add(digits.parse().ok()?)?;
        }
        let tile = Self { level, index, width };
        (width > 0 && tile.path() == path).then_some(tile)
    }

    /// Returns the tile with this level and index in a log of `size` entries; `None` when there is
    /// no such tile.
    #[must_use]
    pub fn at(level: Option<u32>, index: u64, size: u64) -> Option<Self> {
        let hashes = size >> (HEIGHT * level.unwrap_or(0));
        let before = index.checked_mul(WIDTH)?;
        let width = hashes.checked_sub(before)?.min(WIDTH);
        (width > 0).then_some(Self { level, index, width })
    }

    /// Returns the last tile of a level; `None` if it is full or does not exist.
    #[must_use]
    pub fn partial(level: Option<u32>, size: u64) -> Option<Self> {
        let hashes = size >> (HEIGHT * level.unwrap_or(0));
        Self::at(level, hashes / WIDTH, size)
    }
}

/// Returns the level of a node in the flat post-order, and its number in that level.
pub(crate) fn node_at(position: u64) -> (u32, u64) {
    // The last leaf at or before the position is the last one below the node.
    let (mut low, mut high) = (0u64, position + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if leaf_position(middle) <= position {
            low = middle;
        } else {
            high = middle;
        }
    }
    let level = position - leaf_position(low);
    let level = u32::try_from(level).unwrap_or(u32::MAX);
    (level, (low + 1).checked_shr(level).unwrap_or(0).saturating_sub(1))
}

/// Returns the tile from which a node is computed, by level and number, and the position and number
/// of the tile's hashes under the node.
pub(crate) fn source_tile(level: u32, index: u64) -> (u32, u64, usize, usize) {
    let within = level % HEIGHT;
    let first = index << within;
    (
        level / HEIGHT,
        first / WIDTH,
        (first % WIDTH) as usize,
        1 << within,
    )
}

/// Returns the root of a perfect tree over hashes, whose number must be a power of two.
pub(crate) fn subtree_root(hashes: &[Hash]) -> Hash {
    let mut level = hashes.to_vec();
    while level.len() > 1 {
        level = level
            .chunks_exact(2)
            .map(|pair| proofgate_ledger::node_hash(&pair[0], &pair[1]))
            .collect();
    }
    level.first().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first failure")]

    use super::{Tile, WIDTH, node_at};
    use proofgate_ledger::node_position;

    #[test]
    fn paths_are_those_of_the_specification() {
        let tile = |level, index, width| Tile { level, index, width };
        for (tile, path) in [
            (tile(Some(0), 0, WIDTH), "tile/0/000"),
            (tile(Some(1), 1_234_067, WIDTH), "tile/1/x001/x234/067"),
            (tile(Some(0), 273, 8), "tile/0/273.p/8"),
            (tile(None, 999, 255), "tile/entries/999.p/255"),
            (tile(None, 1000, WIDTH), "tile/entries/x001/000"),
        ] {
            assert_eq!(tile.path(), path);
            assert_eq!(Tile::parse(path), Some(tile));
        }
    }

    #[test]
    fn another_spelling_of_a_path_is_none() {
        for path in [
            "tile/0/0",
            "tile/0/000.p/256",
            "tile/0/000.p/0",
            "tile/0/000.p/08",
            "tile/8/000",
            "tile/00/000",
            "tile/0/x000/000",
            "tile/0/../000",
            "tile/0/+01",
            "tile/0/1000",
            "tile/data/000",
            "tile/0/000/",
            "",
            "tile/entries/99999999999999999999999",
        ] {
            assert_eq!(Tile::parse(path), None, "{path}");
        }
    }

    #[test]
    fn a_node_is_found_by_its_position() {
        for level in 0..12 {
            for index in [0, 1, 2, 5, 255, 256, 1000] {
                assert_eq!(node_at(node_position(level, index)), (level, index));
            }
        }
    }
}
