//! Prints the roots and proofs of this crate, one per line, so that another implementation can
//! verify them:
//!
//! ```text
//! root <size> <hash>
//! inclusion <index> <size> <hash>*
//! consistency <old> <new> <hash>*
//! ```
//!
//! Leaf *n* is the decimal text of *n*; hashes are hexadecimal. The program prints all roots and
//! proofs for sizes up to the first argument (default 300). Then it prints four proofs of each kind
//! for each of N sizes between the first and the third argument (default 1,000,000), where N is the
//! second argument (default 200). The output is always the same.
//!
//! `cargo run --release -p proofgate-ledger --example proofs | (cd e2e/verifier && go run . proofs)`

use proofgate_ledger::{Hash, Mmr, consistency_proof, inclusion_proof, leaf_hash};
use std::collections::BTreeSet;
use std::error::Error;
use std::io::{BufWriter, Write};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let mut number = |default| arguments.next().unwrap_or(Ok(default));
    let (all, some, most) = (number(300)?, number(200)?, number(1_000_000)?);
    let mut random = Random(0x70_72_6f_6f_66);
    let sizes: BTreeSet<u64> = (0..some).map(|_| all + 1 + random.below(most - all)).collect();

    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut tree = Mmr::new();
    let mut nodes: Vec<Hash> = Vec::new();
    let last = sizes.last().copied().unwrap_or(all).max(all);
    line(&mut out, "root 0", &[tree.root()])?;
    for size in 1..=last {
        tree.push(leaf_hash((size - 1).to_string().as_bytes()), &mut |node| {
            nodes.push(node)
        });
        let wanted: Vec<(u64, u64)> = if size <= all {
            (0..size).map(|index| (index, index + 1)).collect()
        } else if sizes.contains(&size) {
            (0..4)
                .map(|_| (random.below(size), 1 + random.below(size)))
                .collect()
        } else {
            continue;
        };
        line(&mut out, &format!("root {size}"), &[tree.root()])?;
        for (index, old) in wanted {
            let path = inclusion_proof(&nodes, index, size)?;
            line(&mut out, &format!("inclusion {index} {size}"), &path)?;
            let path = consistency_proof(&nodes, old, size)?;
            line(&mut out, &format!("consistency {old} {size}"), &path)?;
        }
    }
    out.flush()?;
    Ok(())
}

fn line(out: &mut impl Write, head: &str, hashes: &[Hash]) -> std::io::Result<()> {
    write!(out, "{head}")?;
    for hash in hashes {
        write!(out, " ")?;
        for byte in hash {
            write!(out, "{byte:02x}")?;
        }
    }
    writeln!(out)
}

/// A SplitMix64 generator (Steele, Lea and Flood, 2014). It returns the same numbers on every
/// machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
