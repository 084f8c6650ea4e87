//! The writer: encodes records into a batch and writes the batch. It never syncs, never creates a file and never waits.
//!
//! **Room.** Frames do not cross segments, so a segment's last bytes can stay unused: at most one byte less than the
//! largest frame. `room` therefore counts, of what is left of the current segment and of every prepared one, all but
//! that much. As long as the reserved total does not exceed it, any sequence of frames within the reservations fits: a
//! segment is left only for a frame that is larger than what remains, so each segment that was left took at least its
//! share.

use crate::authenticity::FrameTags;
use crate::hand_over::{Segment, SegmentQueue};
use crate::mark::{LogMark, PositionedMark};
use crate::salts::Salts;
use crate::storage::write_full;
use crate::{WalError, Watermark};
use proofgate_evidence::frame::{
    FRAME_HEADER_LEN, SEGMENT_HEADER_LEN, SegmentCrc, SegmentHeader, frame_len, seal_frame,
};
use proofgate_evidence::salts::SALT_LEN;
use proofgate_ledger::LedgerError;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use ulid::Ulid;

/// Room that is kept for the seal record, so that a full disk does not prevent an orderly end.
const SEAL_RESERVE_BYTES: u64 = frame_len(1024);
/// A batch buffer larger than this is given back after a flush.
const MAX_RETAINED_BUFFER: usize = 1 << 20;
/// What is written begins and ends at multiples of this: a write of a part of a block that has left the page cache would
/// wait until the disk has been read (the page size of most systems, and the block size of most file systems).
const BLOCK_LEN: usize = 4096;

/// Room in allocated segments that is promised to somebody. Dropping it gives back what was not used.
#[derive(Debug)]
pub struct Reservation {
    bytes: u64,
    reserved: Arc<AtomicU64>,
}

impl Reservation {
    /// Bytes of frames that are still promised.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.bytes
    }

    /// Gives back all but `bytes` bytes.
    pub fn shrink_to(&mut self, bytes: u64) {
        self.spend(self.bytes.saturating_sub(bytes));
    }

    fn spend(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.reserved.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.spend(self.bytes);
    }
}

/// A run of the batch that goes to one segment with one write.
struct Run {
    segment: Arc<Segment>,
    /// Where in the file it goes.
    offset: u64,
    /// Where in the batch it starts.
    start: usize,
}

/// A record at the end of the batch while it is encoded: when that panics, nothing of it stays.
struct UnframedRecord<'b> {
    batch: &'b mut Vec<u8>,
    start: usize,
}

impl Drop for UnframedRecord<'_> {
    fn drop(&mut self) {
        self.batch.truncate(self.start);
    }
}

/// Appends records to one incarnation's log. Owned by the data-plane thread.
pub struct Writer {
    watermark: Arc<Watermark>,
    queue: Arc<SegmentQueue>,
    salts: Salts,
    dir: PathBuf,
    incarnation: Ulid,
    origin: [u8; 32],
    next_seq: u64,
    prev_crc: u32,
    batch: Vec<u8>,
    /// Bytes at the start of the batch that are written already: those of the block in which the log ends.
    already_written: usize,
    runs: Vec<Run>,
    /// Where the next frame goes in the newest segment.
    end_offset: u64,
    segment_crc: SegmentCrc,
    tags: FrameTags,
    ready_segments: VecDeque<Arc<Segment>>,
    max_record_bytes: usize,
    max_frame_bytes: u64,
    reserved: Arc<AtomicU64>,
    seal_reservation: Option<Reservation>,
    sealed: bool,
    /// The file system had no space for the batch when it was written last.
    no_space: bool,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Writer")
            .field("dir", &self.dir)
            .field("next_seq", &self.next_seq)
            .field("room", &self.available_capacity())
            .field("reserved", &self.reserved())
            .finish_non_exhaustive()
    }
}

impl Writer {
    pub(crate) fn new(
        dir: PathBuf,
        header: &SegmentHeader,
        first: Arc<Segment>,
        salts: Salts,
        (hand_over, watermark): (Arc<SegmentQueue>, Arc<Watermark>),
        tags: FrameTags,
        max_record: usize,
    ) -> Result<Self, WalError> {
        let mut writer = Self {
            watermark,
            queue: hand_over,
            salts,
            dir,
            incarnation: header.incarnation,
            origin: header.origin_digest,
            next_seq: 0,
            prev_crc: header.crc(),
            batch: header.encode().to_vec(),
            already_written: 0,
            end_offset: SEGMENT_HEADER_LEN as u64,
            segment_crc: SegmentCrc::new(header.incarnation, 0),
            tags,
            runs: vec![Run {
                segment: first,
                offset: 0,
                start: 0,
            }],
            ready_segments: VecDeque::new(),
            max_record_bytes: max_record,
            max_frame_bytes: frame_len(max_record),
            reserved: Arc::default(),
            seal_reservation: None,
            sealed: false,
            no_space: false,
        };
        writer.queue.drain_into(&mut writer.ready_segments);
        writer.seal_reservation = Some(writer.reserve(SEAL_RESERVE_BYTES)?);
        Ok(writer)
    }

    /// The incarnation whose log this is.
    #[must_use]
    pub fn incarnation(&self) -> Ulid {
        self.incarnation
    }

    /// Takes the place of the writer of a log that this one continues: what was reserved there counts against the room
    /// here from now on. Call it before anything is reserved here.
    ///
    /// # Errors
    /// [`WalError::OutOfSpace`] when there is no room for so much; nothing has changed then.
    pub fn take_over(&mut self, former: &Self) -> Result<(), WalError> {
        let kept = former.seal_reservation.as_ref().map_or(0, Reservation::remaining);
        self.check()?;
        self.check_capacity(former.reserved().saturating_sub(kept))?;
        let own = self.reserved();
        former.reserved.fetch_add(own, Ordering::Relaxed);
        self.reserved = Arc::clone(&former.reserved);
        if let Some(for_seal) = &mut self.seal_reservation {
            for_seal.reserved = Arc::clone(&self.reserved);
        }
        Ok(())
    }

    /// Says which exchanges are open behind the records appended so far: the ledger thread then notes the place, so that
    /// a successor need not read what lies before it. What cannot be said now, because that thread is just looking, is
    /// left to the next time.
    pub fn mark(&self, mark: LogMark) {
        self.watermark.set_mark(PositionedMark {
            size: self.next_seq,
            mark,
        });
    }

    /// Number that the next appended record will have.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Largest record that can be appended, in bytes.
    #[must_use]
    pub fn max_record(&self) -> usize {
        self.max_record_bytes
    }

    /// Progress shared with the ledger thread.
    #[must_use]
    pub fn watermark(&self) -> Arc<Watermark> {
        Arc::clone(&self.watermark)
    }

    /// Bytes of frames promised to reservations.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::Relaxed)
    }

    /// Promises room for records whose frames ([`frame_bytes`] each) take `bytes` bytes in all. Appends within the
    /// reservation then find room whatever else is appended and whatever happens to the disk's free space.
    ///
    /// # Errors
    /// [`WalError::OutOfSpace`] when the allocated segments are spoken for, or the batch waits for space on the file system;
    /// [`WalError::Poisoned`], [`WalError::Sealed`].
    pub fn reserve(&mut self, bytes: u64) -> Result<Reservation, WalError> {
        self.check()?;
        self.check_space(bytes)?;
        self.check_capacity(bytes)?;
        self.reserved.fetch_add(bytes, Ordering::Relaxed);
        Ok(Reservation {
            bytes,
            reserved: Arc::clone(&self.reserved),
        })
    }

    /// The salt of record `seq`: normally [`Self::next_seq`], just before the admission is appended. One call in 1024
    /// writes the next block of salts.
    ///
    /// # Errors
    /// [`WalError::OutOfSpace`] when the block cannot be written for lack of space (refuse the exchange; the log goes on),
    /// [`EvidenceError::Io`](crate::EvidenceError::Io) when writing it fails otherwise, [`WalError::SaltUnavailable`] for a record of an earlier block.
    pub fn salt(&mut self, seq: u64) -> Result<[u8; SALT_LEN], WalError> {
        self.check()?;
        self.salts.salt(seq, &self.watermark)
    }

    /// Adds a record to the batch, in room that nobody has reserved. `encode` gets the record's number and appends its
    /// bytes to the buffer. Nothing is written before [`Self::flush`].
    ///
    /// # Errors
    /// [`WalError::OutOfSpace`], [`WalError::RecordTooLarge`], [`WalError::Poisoned`], [`WalError::Sealed`], or what
    /// `encode` returns; the batch is then as it was.
    pub fn append(
        &mut self,
        encode: impl FnOnce(u64, &mut Vec<u8>) -> Result<(), LedgerError>,
    ) -> Result<u64, WalError> {
        self.append_with_reservation(None, encode)
    }

    /// Adds a record to the batch, in reserved room. A frame larger than what remains of the reservation takes the rest
    /// from unreserved room.
    ///
    /// # Errors
    /// As [`Self::append`]; [`WalError::OutOfSpace`] only when the reservation does not suffice.
    pub fn append_reserved(
        &mut self,
        reservation: &mut Reservation,
        encode: impl FnOnce(u64, &mut Vec<u8>) -> Result<(), LedgerError>,
    ) -> Result<u64, WalError> {
        self.append_with_reservation(Some(reservation), encode)
    }

    /// Adds the last record to the batch, in room kept for it. No record can follow.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn seal(
        &mut self,
        encode: impl FnOnce(u64, &mut Vec<u8>) -> Result<(), LedgerError>,
    ) -> Result<u64, WalError> {
        let mut room = self.seal_reservation.take();
        let appended = self.append_with_reservation(room.as_mut(), encode);
        match &appended {
            Ok(_) => self.sealed = true,
            Err(_) => self.seal_reservation = room,
        }
        appended
    }

    /// Writes the batch: one positioned write of whole blocks, one more for each segment it enters. When it returns, the records are
    /// written and the watermark says so.
    ///
    /// # Errors
    /// [`EvidenceError::Io`](crate::EvidenceError::Io) when a write fails; none of the batch counts as written then, though whole
    /// records of it may be found later. When the file system had no space ([`WalError::is_out_of_space`]), the batch is kept,
    /// may grow within reservations, and is written by the next call; until then nothing is reserved. Any other failure has
    /// stopped the log for good: [`WalError::Poisoned`] ever after.
    pub fn flush(&mut self) -> Result<(), WalError> {
        self.watermark.check()?;
        self.queue.drain_into(&mut self.ready_segments);
        if self.batch.len() == self.already_written {
            return Ok(());
        }
        let batch = self.batch.len();
        let beyond = self.block_padding();
        self.batch.resize(batch + beyond, 0);
        for (number, run) in self.runs.iter().enumerate() {
            let stop = self
                .runs
                .get(number + 1)
                .map_or(self.batch.len(), |next| next.start);
            let bytes = &self.batch[run.start..stop];
            if bytes.is_empty() {
                continue;
            }
            // The same bytes go to the same place when they are written again.
            if let Err(source) = write_full(&*run.segment.file, bytes, run.offset) {
                let ordinal = run.segment.ordinal;
                let path = self.dir.join(format!("segment {ordinal}"));
                let error = WalError::io("write", &path)(source);
                self.batch.truncate(batch);
                self.no_space = error.is_out_of_space();
                if !self.no_space {
                    self.watermark.poison(error.to_string());
                }
                return Err(error);
            }
        }
        self.no_space = false;
        let bytes = (batch - self.already_written) as u64;
        self.already_written = self.end_offset as usize % BLOCK_LEN;
        self.batch.truncate(batch);
        self.batch.drain(..batch - self.already_written);
        self.batch.shrink_to(MAX_RETAINED_BUFFER);
        self.runs.drain(..self.runs.len() - 1);
        if let Some(run) = self.runs.first_mut() {
            run.offset = self.end_offset - self.already_written as u64;
            run.start = 0;
            self.watermark.set_segment(run.segment.ordinal);
        }
        self.watermark.set_written(self.next_seq, bytes, self.sealed);
        Ok(())
    }

    /// Bytes from the end of the log to that of its last block, which are zero.
    fn block_padding(&self) -> usize {
        let segment = self.runs.last().map_or(0, |run| run.segment.bytes);
        let block = self.end_offset.next_multiple_of(BLOCK_LEN as u64);
        (block.min(segment) - self.end_offset) as usize
    }

    fn check(&self) -> Result<(), WalError> {
        self.watermark.check()?;
        if self.sealed {
            Err(WalError::Sealed)
        } else {
            Ok(())
        }
    }

    fn append_with_reservation(
        &mut self,
        reservation: Option<&mut Reservation>,
        encode: impl FnOnce(u64, &mut Vec<u8>) -> Result<(), LedgerError>,
    ) -> Result<u64, WalError> {
        self.check()?;
        if reservation.is_none() {
            self.check_space(0)?;
        }
        let start = self.batch.len();
        let unframed = UnframedRecord {
            start,
            batch: &mut self.batch,
        };
        unframed.batch.resize(start + FRAME_HEADER_LEN, 0);
        let encoded = encode(self.next_seq, unframed.batch);
        std::mem::forget(unframed);
        let fitted = match encoded {
            Ok(()) => self.check_fit(start, reservation.as_deref()),
            Err(error) => Err(error.into()),
        };
        let frame = match fitted {
            Ok(frame) => frame,
            Err(error) => {
                self.batch.truncate(start);
                return Err(error);
            }
        };
        let start = self.enter_segment(start, frame)?;
        let seq = self.next_seq;
        let durable = self.watermark.durable();
        let tags = &self.tags;
        let sealed = seal_frame(
            &mut self.batch,
            start,
            self.segment_crc,
            seq,
            durable,
            self.prev_crc,
            |frame| tags.tag(seq, frame),
        );
        let Some(crc) = sealed else {
            let reason = "a record could not be authenticated";
            self.watermark.poison(reason);
            return Err(WalError::Poisoned {
                reason: reason.to_owned(),
            });
        };
        if let Some(reservation) = reservation {
            reservation.spend(frame.min(reservation.bytes));
        }
        self.prev_crc = crc;
        self.next_seq += 1;
        self.end_offset += frame;
        Ok(seq)
    }

    /// Checks that the payload at `start` may be a record and has room; returns the bytes of its frame.
    fn check_fit(&mut self, start: usize, reservation: Option<&Reservation>) -> Result<u64, WalError> {
        let Some(bytes) = self.batch.len().checked_sub(start + FRAME_HEADER_LEN) else {
            let reason = "an encoder removed bytes of the batch";
            self.watermark.poison(reason);
            return Err(WalError::Poisoned {
                reason: reason.to_owned(),
            });
        };
        if bytes > self.max_record_bytes {
            return Err(WalError::RecordTooLarge {
                bytes,
                limit: self.max_record_bytes,
            });
        }
        let frame = frame_len(bytes);
        match frame.saturating_sub(reservation.map_or(0, Reservation::remaining)) {
            0 => {}
            unreserved => self.check_capacity(unreserved)?,
        }
        Ok(frame)
    }

    /// Moves to the next segment if a frame at `start` of the batch does not fit the current one; returns where the
    /// frame now starts.
    fn enter_segment(&mut self, start: usize, frame: u64) -> Result<usize, WalError> {
        let current = self.runs.last().map_or(0, |run| run.segment.bytes);
        if self.end_offset + frame <= current {
            return Ok(start);
        }
        let Some(segment) = self.ready_segments.pop_front() else {
            // The accounting of `room` excludes this; if it were wrong, refusing is the safe side.
            self.batch.truncate(start);
            return Err(WalError::OutOfSpace { bytes: frame });
        };
        let header = SegmentHeader {
            incarnation: self.incarnation,
            ordinal: segment.ordinal,
            first_seq: self.next_seq,
            origin_digest: self.origin,
        };
        self.batch.splice(start..start, header.encode());
        self.segment_crc = SegmentCrc::new(self.incarnation, segment.ordinal);
        self.end_offset = SEGMENT_HEADER_LEN as u64;
        self.runs.push(Run {
            segment,
            offset: 0,
            start,
        });
        Ok(start + SEGMENT_HEADER_LEN)
    }

    /// Refuses what nobody has reserved while the batch waits for space.
    fn check_space(&self, bytes: u64) -> Result<(), WalError> {
        match self.no_space {
            true => Err(WalError::OutOfSpace { bytes }),
            false => Ok(()),
        }
    }

    fn check_capacity(&mut self, bytes: u64) -> Result<(), WalError> {
        let fits = |writer: &Self| {
            writer
                .reserved()
                .checked_add(bytes)
                .is_some_and(|all| all <= writer.available_capacity())
        };
        if fits(self) {
            return Ok(());
        }
        self.queue.drain_into(&mut self.ready_segments);
        if fits(self) {
            Ok(())
        } else {
            Err(WalError::OutOfSpace { bytes })
        }
    }

    /// Bytes of frames that are certain to fit the allocated segments, in whatever order they come.
    fn available_capacity(&self) -> u64 {
        let certain = |left: u64| left.saturating_sub(self.max_frame_bytes - 8);
        let current = self
            .runs
            .last()
            .map_or(0, |run| run.segment.bytes - self.end_offset);
        let ready: u64 = self
            .ready_segments
            .iter()
            .map(|segment| certain(segment.bytes - SEGMENT_HEADER_LEN as u64))
            .sum();
        certain(current) + ready
    }

    /// Directory of the incarnation.
    #[must_use]
    pub fn dir(&self) -> &std::path::Path {
        &self.dir
    }
}
