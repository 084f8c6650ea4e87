//! The format of a state file.
//!
//! ```text
//! header   "PGLIMIT" version   body length u64   number of the write u64   body CRC-32C u32   header CRC-32C u32
//! body     snapshots: count, then each; the first is the writer's own
//! snapshot shard, incarnation (16 bytes), number of records, finished (1 byte), taken at (µs), tenants: count, then each
//! tenant   length and bytes of its name, subjects: count, then each
//! subject  0 for the tenant, or 1 and the 4 bytes of an API key's id, or 2 and the 16 bytes of a token subject's id, or 3
//!          and length and bytes of a model's name, or 4 and length and bytes of the name of a plan shared in a namespace;
//!          then periods, in flight, seconds: count, then each; past periods, which a clock has left: count, and unless
//!          that is 0 the base periods, then each
//! periods  day, its tokens and nanodollars, month, its nanodollars, requests of the day, requests and tokens of the month
//! second   the first absolute, each other one as the distance to the previous one; requests, tokens
//! ```
//!
//! Fixed-width numbers are little-endian, except for the incarnation; all others are LEB128. Each older version is written
//! as long as it is sufficient, so that older workers can read the file. Version 1 has no money: its subjects have neither
//! nanodollars nor a month. Version 2 has no shared limits, whose tenant is the namespace, and no days that a clock has
//! left. Version 3 has no requests per day, and neither requests nor tokens per month; version 4 is written while a limit
//! needs them.

use proofgate_limits::{
    ClockStepHistory, Counts, CredentialId, Origin, Periods, Second, Snapshot, SubjectKind, SubjectName,
    Usage, WINDOW_SECONDS,
};
use std::sync::Arc;

/// Maximum file size in bytes: about 200,000 busy keys, or millions that only have a day's count.
pub const MAX_FILE_BYTES: usize = 64 << 20;

/// Header size in bytes. The header differs between any two writes, so it shows whether a file has changed.
pub(crate) const HEADER_BYTES: usize = 32;
const MAGIC: [u8; 7] = *b"PGLIMIT";
/// The version without money.
const VERSION_WITHOUT_MONEY: u8 = 1;
/// The version without shared limits of namespaces.
const VERSION_WITHOUT_SHARES: u8 = 2;
/// The version with shared limits, but without requests per day and requests and tokens per month.
const VERSION_WITH_SHARES: u8 = 3;
/// The newest version.
const VERSION_WITH_ALL_COUNTS: u8 = 4;
/// The maximum length of a tenant's or model's name in bytes; a longer one is damage.
const MAX_NAME_BYTES: usize = 4096;
/// The maximum number of past days in a file after changes of the clock; more are damage.
const MAX_PAST_PERIODS: usize = 64;

/// Why a file is damaged.
pub(crate) type Damage = &'static str;

/// Encodes a file into `out`. With `all_counts` the version has every count, otherwise only those that workers before
/// version 4 can read.
pub(crate) fn encode<'s>(
    number: u64,
    snapshots: impl Iterator<Item = &'s Snapshot> + Clone,
    all_counts: bool,
    out: &mut Vec<u8>,
) {
    out.clear();
    out.resize(HEADER_BYTES, 0);
    write_number(out, snapshots.clone().count() as u64);
    let version = match all_counts && snapshots.clone().any(has_all_counts) {
        true => VERSION_WITH_ALL_COUNTS,
        false => snapshots
            .clone()
            .map(version_of)
            .max()
            .unwrap_or(VERSION_WITHOUT_MONEY),
    };
    for snapshot in snapshots {
        write_snapshot(out, snapshot, version);
    }
    let (header, body) = out.split_at_mut(HEADER_BYTES);
    header[..7].copy_from_slice(&MAGIC);
    header[7] = version;
    header[8..16].copy_from_slice(&(body.len() as u64).to_le_bytes());
    header[16..24].copy_from_slice(&number.to_le_bytes());
    header[24..28].copy_from_slice(&crc32c::crc32c(body).to_le_bytes());
    let crc = crc32c::crc32c(&header[..28]);
    header[28..].copy_from_slice(&crc.to_le_bytes());
}

/// Returns the oldest version that can hold a snapshot, apart from the counts of version 4.
fn version_of(snapshot: &Snapshot) -> u8 {
    let versions = snapshot
        .subjects
        .iter()
        .map(|(name, usage)| match (&name.kind, usage) {
            _ if usage.clock_history.is_some() => VERSION_WITH_SHARES,
            (SubjectKind::Shared(_), _) => VERSION_WITH_SHARES,
            (SubjectKind::Model(_), _) => VERSION_WITHOUT_SHARES,
            (_, usage) if usage.periods.day_counts.cost > 0 || usage.periods.month_counts.cost > 0 => {
                VERSION_WITHOUT_SHARES
            }
            _ => VERSION_WITHOUT_MONEY,
        });
    versions.max().unwrap_or(VERSION_WITHOUT_MONEY)
}

/// Iterates over all days and months for which a usage has counts.
fn all_periods(usage: &Usage) -> impl Iterator<Item = &Periods> {
    let stepped = usage.clock_history.iter();
    let left = stepped.flat_map(|stepped| std::iter::once(&stepped.base).chain(&stepped.past_periods));
    std::iter::once(&usage.periods).chain(left)
}

/// Returns whether there are counts that versions before 4 do not have.
pub(crate) fn has_all_counts(snapshot: &Snapshot) -> bool {
    let mut counts = snapshot
        .subjects
        .values()
        .flat_map(all_periods)
        .map(version_4_counts);
    counts.any(|counts| counts != [0; 3])
}

fn version_4_counts(periods: &Periods) -> [u64; 3] {
    let Counts { requests, tokens, .. } = periods.month_counts;
    [periods.day_counts.requests, requests, tokens]
}

/// The body described by a header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyInfo {
    /// Length in bytes.
    pub(crate) length: usize,
    crc: u32,
    version: u8,
}

/// The damage of a file in a format that this version cannot read.
pub(crate) const UNSUPPORTED_VERSION: Damage = "its version is not supported";

/// Decodes a header and returns the description of its body.
pub(crate) fn decode_header(header: &[u8; HEADER_BYTES]) -> Result<BodyInfo, Damage> {
    let u32_at = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if header[..7] != MAGIC {
        return Err("it does not begin like a state file of limits");
    }
    if crc32c::crc32c(&header[..28]) != u32_at(28) {
        return Err("the header's checksum does not match");
    }
    if !(VERSION_WITHOUT_MONEY..=VERSION_WITH_ALL_COUNTS).contains(&header[7]) {
        return Err(UNSUPPORTED_VERSION);
    }
    let length = u64::from(u32_at(8)) | u64::from(u32_at(12)) << 32;
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > MAX_FILE_BYTES - HEADER_BYTES {
        return Err("it exceeds the maximum file size");
    }
    Ok(BodyInfo {
        length,
        crc: u32_at(24),
        version: header[7],
    })
}

/// Decodes a body and returns its snapshots, the writer's own first.
pub(crate) fn decode_body(body: &[u8], told: BodyInfo) -> Result<Vec<Snapshot>, Damage> {
    if crc32c::crc32c(body) != told.crc {
        return Err("the checksum of its content does not match");
    }
    let mut reader = Reader {
        rest: body,
        version: told.version,
    };
    let count = reader.count(20)?;
    let mut snapshots = Vec::with_capacity(count);
    for _ in 0..count {
        snapshots.push(reader.snapshot()?);
    }
    if !reader.rest.is_empty() {
        return Err("extra bytes follow the last snapshot");
    }
    Ok(snapshots)
}

fn write_number(out: &mut Vec<u8>, number: u64) {
    let mut left = number;
    while left > 0x7f {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

fn write_snapshot(out: &mut Vec<u8>, snapshot: &Snapshot, version: u8) {
    write_number(out, u64::from(snapshot.origin.shard));
    out.extend_from_slice(&snapshot.origin.incarnation.to_be_bytes());
    write_number(out, snapshot.through_seq);
    out.push(u8::from(snapshot.finished));
    write_number(out, snapshot.taken_at);
    // A tenant sorts before its keys, and they are adjacent.
    let same_tenant =
        |one: &(&SubjectName, &Usage), other: &(&SubjectName, &Usage)| one.0.tenant == other.0.tenant;
    let subjects: Vec<_> = snapshot.subjects.iter().collect();
    write_number(out, subjects.chunk_by(same_tenant).count() as u64);
    for group in subjects.chunk_by(same_tenant) {
        let name = group[0].0.tenant.as_bytes();
        write_number(out, name.len() as u64);
        out.extend_from_slice(name);
        write_number(out, group.len() as u64);
        for (name, usage) in group {
            write_subject(out, &name.kind, usage, version);
        }
    }
}

fn write_subject(out: &mut Vec<u8>, part: &SubjectKind, usage: &Usage, version: u8) {
    match part {
        SubjectKind::Tenant => out.push(0),
        SubjectKind::Model(name) | SubjectKind::Shared(name) => {
            out.push(if matches!(part, SubjectKind::Model(_)) {
                3
            } else {
                4
            });
            write_number(out, name.len() as u64);
            out.extend_from_slice(name.as_bytes());
        }
        SubjectKind::Key(key) => {
            out.push(match key {
                CredentialId::ApiKey(_) => 1,
                CredentialId::Subject(_) => 2,
            });
            out.extend_from_slice(key.as_bytes());
        }
    }
    write_periods(out, &usage.periods, version);
    write_number(out, usage.in_flight);
    write_number(out, usage.seconds.len() as u64);
    let mut before = 0;
    for held in &usage.seconds {
        write_number(out, held.second.saturating_sub(before));
        write_number(out, u64::from(held.requests));
        write_number(out, held.tokens);
        before = held.second;
    }
    if version >= VERSION_WITH_SHARES {
        write_clock_history(out, usage.clock_history.as_deref(), version);
    }
}

fn write_periods(out: &mut Vec<u8>, periods: &Periods, version: u8) {
    write_number(out, periods.day);
    write_number(out, periods.day_counts.tokens);
    if version > VERSION_WITHOUT_MONEY {
        write_number(out, periods.day_counts.cost);
        write_number(out, periods.month);
        write_number(out, periods.month_counts.cost);
    }
    if version >= VERSION_WITH_ALL_COUNTS {
        for count in version_4_counts(periods) {
            write_number(out, count);
        }
    }
}

fn write_clock_history(out: &mut Vec<u8>, stepped: Option<&ClockStepHistory>, version: u8) {
    let Some(stepped) = stepped.filter(|stepped| !stepped.past_periods.is_empty()) else {
        write_number(out, 0);
        return;
    };
    write_number(out, stepped.past_periods.len() as u64);
    for periods in std::iter::once(&stepped.base).chain(&stepped.past_periods) {
        write_periods(out, periods, version);
    }
}

/// A decoder of a body. Any deviation from the format is damage.
struct Reader<'b> {
    rest: &'b [u8],
    version: u8,
}

const TRUNCATED: Damage = "it ends early";

impl<'b> Reader<'b> {
    fn bytes(&mut self, count: usize) -> Result<&'b [u8], Damage> {
        let (bytes, left) = self.rest.split_at_checked(count).ok_or(TRUNCATED)?;
        self.rest = left;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        self.bytes(N)?.try_into().map_err(|_| TRUNCATED)
    }

    fn number(&mut self) -> Result<u64, Damage> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("a number is too large")
    }

    /// Reads the number of items that follow, each of at least `bytes` bytes; more than can fit are damage.
    fn count(&mut self, bytes: usize) -> Result<usize, Damage> {
        let count = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if count > self.rest.len() / bytes {
            return Err(TRUNCATED);
        }
        Ok(count)
    }

    fn flag(&mut self) -> Result<bool, Damage> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err("a flag is neither 0 nor 1"),
        }
    }

    fn snapshot(&mut self) -> Result<Snapshot, Damage> {
        let shard = u32::try_from(self.number()?).map_err(|_| "a shard's number is too large")?;
        let incarnation = u128::from_be_bytes(self.array()?);
        let mut snapshot = Snapshot::empty(Origin { shard, incarnation });
        snapshot.through_seq = self.number()?;
        snapshot.finished = self.flag()?;
        snapshot.taken_at = self.number()?;
        for _ in 0..self.count(3)? {
            self.tenant(&mut snapshot)?;
        }
        Ok(snapshot)
    }

    fn tenant(&mut self, snapshot: &mut Snapshot) -> Result<(), Damage> {
        let tenant = self.name()?;
        for _ in 0..self.count(5)? {
            let part = match self.array()? {
                [0] => SubjectKind::Tenant,
                [1] => SubjectKind::Key(CredentialId::ApiKey(self.array()?)),
                [2] => SubjectKind::Key(CredentialId::Subject(self.array()?)),
                [3] if self.version > VERSION_WITHOUT_MONEY => SubjectKind::Model(self.name()?),
                [4] if self.version >= VERSION_WITH_SHARES => SubjectKind::Shared(self.name()?),
                _ => return Err("an entry is of an unknown kind"),
            };
            let name = SubjectName {
                tenant: Arc::clone(&tenant),
                kind: part,
            };
            let usage = self.usage()?;
            if snapshot.subjects.insert(name, usage).is_some() {
                return Err("a tenant, key or model occurs twice");
            }
        }
        Ok(())
    }

    fn name(&mut self) -> Result<Arc<str>, Damage> {
        let length = self.count(1)?;
        if length > MAX_NAME_BYTES {
            return Err("a name is too long");
        }
        let name = std::str::from_utf8(self.bytes(length)?).map_err(|_| "a name is not UTF-8")?;
        Ok(Arc::from(name))
    }

    fn usage(&mut self) -> Result<Usage, Damage> {
        let periods = self.periods()?;
        let in_flight = self.number()?;
        let count = self.count(3)?;
        if count as u64 > WINDOW_SECONDS {
            return Err("the usage of one minute has too many seconds");
        }
        let mut seconds: Vec<Second> = Vec::with_capacity(count);
        for _ in 0..count {
            let distance = self.number()?;
            let second = match seconds.last() {
                None => distance,
                Some(_) if distance == 0 => return Err("a second occurs twice"),
                Some(before) => before
                    .second
                    .checked_add(distance)
                    .ok_or("a second is out of range")?,
            };
            let requests = u32::try_from(self.number()?).map_err(|_| "a second has too many requests")?;
            seconds.push(Second {
                second,
                requests,
                tokens: self.number()?,
            });
        }
        let stepped = match self.version >= VERSION_WITH_SHARES {
            true => self.clock_history()?,
            false => None,
        };
        Ok(Usage {
            periods,
            in_flight,
            seconds,
            clock_history: stepped,
        })
    }

    fn clock_history(&mut self) -> Result<Option<Box<ClockStepHistory>>, Damage> {
        let count = self.count(5)?;
        if count > MAX_PAST_PERIODS {
            return Err("a change of the clock has too many days");
        }
        if count == 0 {
            return Ok(None);
        }
        let base = self.periods()?;
        let left: Result<Vec<Periods>, Damage> = (0..count).map(|_| self.periods()).collect();
        Ok(Some(Box::new(ClockStepHistory::new(left?, base))))
    }

    fn periods(&mut self) -> Result<Periods, Damage> {
        let (mut of_day, mut of_month) = (Counts::NONE, Counts::NONE);
        let (day, mut month) = (self.number()?, 0);
        of_day.tokens = self.number()?;
        if self.version > VERSION_WITHOUT_MONEY {
            [of_day.cost, month, of_month.cost] = self.numbers()?;
        }
        if self.version >= VERSION_WITH_ALL_COUNTS {
            [of_day.requests, of_month.requests, of_month.tokens] = self.numbers()?;
        }
        Ok(Periods {
            day,
            day_counts: of_day,
            month,
            month_counts: of_month,
        })
    }

    fn numbers<const N: usize>(&mut self) -> Result<[u64; N], Damage> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.number()?;
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told(body: &[u8], version: u8) -> BodyInfo {
        BodyInfo {
            length: body.len(),
            crc: crc32c::crc32c(body),
            version,
        }
    }

    #[test]
    fn without_money_a_file_is_one_that_workers_from_before_it_read() {
        // One snapshot of shard 0, incarnation 0: 5 records, not ended, at 6; tenant `a` as a whole: day 7, 8 tokens, 9 in
        // flight, one second.
        let mut body = vec![1, 0];
        body.extend_from_slice(&[0; 16]);
        body.extend_from_slice(&[5, 0, 6, 1, 1, b'a', 1, 0, 7, 8, 9, 1, 10, 11, 12]);
        let snapshots = decode_body(&body, told(&body, VERSION_WITHOUT_MONEY)).unwrap();
        let usage = snapshots[0].subjects.values().next().unwrap();
        let expected = Usage {
            periods: Periods {
                day: 7,
                day_counts: Counts {
                    tokens: 8,
                    ..Counts::NONE
                },
                ..Periods::default()
            },
            in_flight: 9,
            seconds: vec![Second {
                second: 10,
                requests: 11,
                tokens: 12,
            }],
            ..Usage::default()
        };
        assert_eq!(*usage, expected);
        let mut written = Vec::new();
        encode(1, snapshots.iter(), true, &mut written);
        assert_eq!(
            (written[7], &written[HEADER_BYTES..]),
            (VERSION_WITHOUT_MONEY, &body[..])
        );
    }

    fn of_a_day(of_day: Counts) -> Usage {
        Usage {
            periods: Periods {
                day: 7,
                day_counts: of_day,
                ..Periods::default()
            },
            ..Usage::default()
        }
    }

    #[test]
    fn requests_of_a_day_are_written_where_a_limit_needs_them_and_else_every_worker_can_read_the_file() {
        let mut snapshot = Snapshot::empty(Origin {
            shard: 0,
            incarnation: 0,
        });
        let name = SubjectName {
            tenant: "a".into(),
            kind: SubjectKind::Tenant,
        };
        for (requests, all_counts, version) in [
            (0, true, VERSION_WITHOUT_MONEY),
            (8, false, VERSION_WITHOUT_MONEY),
            (8, true, VERSION_WITH_ALL_COUNTS),
        ] {
            let counts = Counts {
                requests,
                tokens: 1,
                cost: 0,
            };
            snapshot.subjects.insert(name.clone(), of_a_day(counts));
            let mut written = Vec::new();
            encode(1, std::iter::once(&snapshot), all_counts, &mut written);
            assert_eq!(written[7], version);
            let body = &written[HEADER_BYTES..];
            let read = decode_body(body, told(body, version)).unwrap();
            let expected = if all_counts { requests } else { 0 };
            let counts = read[0].subjects[&name].periods.day_counts;
            assert_eq!((counts.requests, counts.tokens), (expected, 1));
        }
    }

    #[test]
    fn where_no_namespace_shares_anything_a_file_is_one_that_workers_from_before_it_read() {
        let mut snapshot = Snapshot::empty(Origin {
            shard: 0,
            incarnation: 0,
        });
        let of_tenant = |part| SubjectName {
            tenant: "a".into(),
            kind: part,
        };
        let usage = of_a_day(Counts {
            cost: 8,
            ..Counts::NONE
        });
        for (part, version) in [
            (SubjectKind::Tenant, VERSION_WITHOUT_SHARES),
            (SubjectKind::Model("m".into()), VERSION_WITHOUT_SHARES),
            (SubjectKind::Shared("gold".into()), VERSION_WITH_SHARES),
        ] {
            snapshot.subjects.insert(of_tenant(part), usage.clone());
            let mut written = Vec::new();
            encode(1, std::iter::once(&snapshot), true, &mut written);
            assert_eq!(written[7], version);
        }
        let mut written = Vec::new();
        encode(1, std::iter::once(&snapshot), true, &mut written);
        let body = &written[HEADER_BYTES..];
        assert!(decode_body(body, told(body, VERSION_WITHOUT_SHARES)).is_err());
    }

    fn periods() -> impl Strategy<Value = Periods> {
        let counts = || {
            any::<[u64; 3]>().prop_map(|[requests, tokens, cost]| Counts {
                requests,
                tokens,
                cost,
            })
        };
        (any::<[u64; 2]>(), counts(), counts()).prop_map(|([day, month], of_day, of_month)| Periods {
            day,
            day_counts: of_day,
            month,
            month_counts: of_month,
        })
    }

    fn usage() -> impl Strategy<Value = Usage> {
        let seconds = prop::collection::btree_map(0..1u64 << 40, (any::<u32>(), any::<u64>()), 0..61);
        let stepped = prop::collection::vec(periods(), 0..4);
        (periods(), any::<u64>(), seconds, stepped).prop_map(|(periods, in_flight, seconds, left)| Usage {
            clock_history: left
                .first()
                .copied()
                .map(|base| Box::new(ClockStepHistory::new(left, base))),
            periods,
            in_flight,
            seconds: seconds
                .into_iter()
                .map(|(second, (requests, tokens))| Second {
                    second,
                    requests,
                    tokens,
                })
                .collect(),
        })
    }

    fn snapshot() -> impl Strategy<Value = Snapshot> {
        let credential = prop_oneof![
            any::<[u8; 4]>().prop_map(CredentialId::ApiKey),
            any::<[u8; 16]>().prop_map(CredentialId::Subject),
        ];
        let part = prop_oneof![
            Just(SubjectKind::Tenant),
            credential.prop_map(SubjectKind::Key),
            "[a-cé]{0,3}".prop_map(|model| SubjectKind::Model(model.into())),
            "[a-cé]{0,3}".prop_map(|plan| SubjectKind::Shared(plan.into())),
        ];
        let name = ("[a-cé]{0,3}", part).prop_map(|(tenant, part)| SubjectName {
            tenant: tenant.into(),
            kind: part,
        });
        let subjects = prop::collection::btree_map(name, usage(), 0..8);
        (any::<(u32, u128, u64, bool, u64)>(), subjects).prop_map(
            |((shard, incarnation, through_seq, ended, at), subjects)| Snapshot {
                origin: Origin { shard, incarnation },
                through_seq,
                finished: ended,
                taken_at: at,
                subjects,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(number in any::<u64>(), snapshots in prop::collection::vec(snapshot(), 0..4)) {
            let mut bytes = Vec::new();
            encode(number, snapshots.iter(), true, &mut bytes);
            let body = decode_header(bytes[..HEADER_BYTES].try_into().unwrap()).unwrap();
            prop_assert_eq!(body.length, bytes.len() - HEADER_BYTES);
            prop_assert_eq!(decode_body(&bytes[HEADER_BYTES..], body), Ok(snapshots));
        }

        /// Decoding survives any body, even one with a valid checksum.
        #[test]
        fn no_bytes_do_harm(
            snapshots in prop::collection::vec(snapshot(), 0..3),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = Vec::new();
            encode(1, snapshots.iter(), true, &mut bytes);
            let mut body = bytes.split_off(HEADER_BYTES);
            for (at, byte) in changes {
                let at = at.index(body.len());
                body[at] = byte;
            }
            let _ = decode_body(&body, told(&body, VERSION_WITH_ALL_COUNTS));
            body.truncate(cut.index(body.len() + 1));
            let _ = decode_body(&body, told(&body, VERSION_WITH_ALL_COUNTS));
        }
    }

    #[test]
    fn a_count_that_cannot_be_is_refused_before_anything_is_allocated() {
        let body = [0xff, 0xff, 0xff, 0xff, 0x7f];
        assert_eq!(
            decode_body(&body, told(&body, VERSION_WITH_ALL_COUNTS)),
            Err(TRUNCATED)
        );
        let body = [0xff; 11];
        assert_eq!(
            decode_body(&body, told(&body, VERSION_WITH_ALL_COUNTS)),
            Err("a number is too large")
        );
    }
}
