//! The writer, which encodes records into a batch and writes the batch. It never syncs, never
//! creates a file and never waits.
//!
//! **Capacity.** Frames do not cross segments, so the last bytes of a segment can remain unused: at
//! most one byte less than the largest frame. The capacity is the space left in the current segment
//! and in every prepared segment, minus this maximum for each segment. If the reserved total does
//! not exceed the capacity, any sequence of frames within the reservations fits: the writer leaves
//! a segment only when the next frame is larger than the remaining space, so each full segment has
//! held at least its counted capacity.

use crate::authenticity::FrameTags;
use crate::resume_state::{PositionedResumeState, ResumeState};
use crate::salts::Salts;
use crate::segment_queue::{Segment, SegmentQueue};
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

/// Capacity reserved for the seal record, so that a full disk does not prevent an orderly close.
const SEAL_RESERVE_BYTES: u64 = frame_len(1024);
/// Largest batch buffer that is not freed after a flush.
const MAX_RETAINED_BUFFER: usize = 1 << 20;
/// Block size: writes start and end at multiples of it. A write of part of a block that is no
/// longer in the page cache would wait for a read from the disk. This size is the page size of most
/// systems and the block size of most file systems.
const BLOCK_LEN: usize = 4096;

/// A reservation of capacity in allocated segments. Dropping it releases the unused capacity.
#[derive(Debug)]
pub struct Reservation {
    bytes: u64,
    reserved: Arc<AtomicU64>,
}

impl Reservation {
    /// Returns the number of frame bytes that are still reserved.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.bytes
    }

    /// Releases all but `bytes` bytes.
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

/// A part of the batch that is written to one segment with one write.
struct Run {
    segment: Arc<Segment>,
    /// Offset in the file.
    offset: u64,
    /// Start in the batch.
    start: usize,
}

/// A record that is being encoded at the end of the batch. If the encoder panics, the record is
/// removed.
struct UnframedRecord<'b> {
    batch: &'b mut Vec<u8>,
    start: usize,
}

impl Drop for UnframedRecord<'_> {
    fn drop(&mut self) {
        self.batch.truncate(self.start);
    }
}

/// A writer that appends records to one incarnation's log, owned by the data-plane thread.
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
    /// Number of bytes at the start of the batch that are already written, because the log ends
    /// within this block.
    already_written: usize,
    runs: Vec<Run>,
    /// Offset of the next frame in the newest segment.
    end_offset: u64,
    segment_crc: SegmentCrc,
    tags: FrameTags,
    ready_segments: VecDeque<Arc<Segment>>,
    max_record_bytes: usize,
    max_frame_bytes: u64,
    reserved: Arc<AtomicU64>,
    seal_reservation: Option<Reservation>,
    sealed: bool,
    /// Whether the file system had no space for the batch at the last write.
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

    /// Returns the incarnation of this log.
    #[must_use]
    pub fn incarnation(&self) -> Ulid {
        self.incarnation
    }

    /// Takes over the reservations of `former`, the writer of the log that this log continues. From
    /// now on they count against the capacity of this writer. Call this before any other
    /// reservation on this writer.
    ///
    /// # Errors
    /// [`WalError::OutOfSpace`] when the capacity is too small. Nothing is changed in this case.
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

    /// Marks the current position with its open exchanges, so that the ledger thread can write a resume point and a
    /// successor need not read the records before it. If the ledger thread holds the lock at this moment, the mark is
    /// skipped until the next call.
    pub fn set_resume_state(&self, mark: ResumeState) {
        self.watermark.set_resume_state(PositionedResumeState {
            size: self.next_seq,
            state: mark,
        });
    }

    /// Returns the number of the next record to be appended.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Returns the size of the largest record that can be appended, in bytes.
    #[must_use]
    pub fn max_record_bytes(&self) -> usize {
        self.max_record_bytes
    }

    /// Returns the progress that the writer shares with the ledger thread.
    #[must_use]
    pub fn watermark(&self) -> Arc<Watermark> {
        Arc::clone(&self.watermark)
    }

    /// Returns the number of frame bytes that are reserved.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::Relaxed)
    }

    /// Reserves capacity for records whose frames ([`frame_len`] each) take `bytes` bytes in total.
    /// Appends within the reservation then always fit, regardless of other appends and of the free
    /// space on the disk.
    ///
    /// # Errors
    /// [`WalError::OutOfSpace`] when the allocated segments are fully reserved, or the batch waits for space on the
    /// file system; [`WalError::Poisoned`], [`WalError::Sealed`].
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

    /// Returns the salt of record `seq`. Callers normally pass [`Self::next_seq`] just before they
    /// append an admission. One call in 1024 writes the next block of salts.
    ///
    /// # Errors
    /// [`WalError::OutOfSpace`] when the block cannot be written for lack of space (refuse the exchange; the log
    /// continues), [`EvidenceError::Io`](crate::EvidenceError::Io) when the write fails for another reason,
    /// [`WalError::SaltUnavailable`] for a record of an earlier block.
    pub fn salt(&mut self, seq: u64) -> Result<[u8; SALT_LEN], WalError> {
        self.check()?;
        self.salts.salt(seq, &self.watermark)
    }

    /// Adds a record to the batch, in unreserved capacity. `encode` receives the record's number
    /// and appends the record's bytes to the buffer. Nothing is written to the file before
    /// [`Self::flush`].
    ///
    /// # Errors
    /// [`WalError::OutOfSpace`], [`WalError::RecordTooLarge`], [`WalError::Poisoned`], [`WalError::Sealed`], or the
    /// error of `encode`; the batch is then unchanged.
    pub fn append(
        &mut self,
        encode: impl FnOnce(u64, &mut Vec<u8>) -> Result<(), LedgerError>,
    ) -> Result<u64, WalError> {
        self.append_with_reservation(None, encode)
    }

    /// Adds a record to the batch, in reserved capacity. If a frame is larger than the rest of the
    /// reservation, it also uses unreserved capacity.
    ///
    /// # Errors
    /// Same as [`Self::append`]; [`WalError::OutOfSpace`] only when the reservation does not suffice.
    pub fn append_reserved(
        &mut self,
        reservation: &mut Reservation,
        encode: impl FnOnce(u64, &mut Vec<u8>) -> Result<(), LedgerError>,
    ) -> Result<u64, WalError> {
        self.append_with_reservation(Some(reservation), encode)
    }

    /// Adds the last record to the batch, in capacity reserved for it. No record can follow.
    ///
    /// # Errors
    /// Same as [`Self::append`].
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

    /// Writes the batch with one positioned write of whole blocks, plus one write for each further
    /// segment. When this function returns, the records are written and the watermark is updated.
    ///
    /// # Errors
    /// [`EvidenceError::Io`](crate::EvidenceError::Io) when a write fails. No record of the batch
    /// then counts as written, although a later reader may find whole records of it. If the file
    /// system had no space ([`WalError::is_out_of_space`]), the batch remains, may grow within
    /// reservations, and is written by the next call; until then nothing can be reserved. Any other
    /// failure stops the log permanently: every later call returns [`WalError::Poisoned`].
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
            // A retry writes the same bytes to the same offset.
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

    /// Returns the number of zero bytes between the end of the log and the end of its last block.
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

    /// Checks that the payload at `start` is small enough and fits the capacity. Returns the size
    /// of its frame in bytes.
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

    /// Enters the next segment if a frame at `start` of the batch does not fit the current segment.
    /// Returns the new start of the frame.
    fn enter_segment(&mut self, start: usize, frame: u64) -> Result<usize, WalError> {
        let current = self.runs.last().map_or(0, |run| run.segment.bytes);
        if self.end_offset + frame <= current {
            return Ok(start);
        }
        let Some(segment) = self.ready_segments.pop_front() else {
            // The capacity accounting excludes this case. If the accounting is wrong, a refusal is
            // safe.
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

    /// Refuses unreserved records while the batch waits for space.
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

    /// Returns the number of frame bytes that always fit the allocated segments, in any order.
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

    /// Returns the directory of the incarnation.
    #[must_use]
    pub fn dir(&self) -> &std::path::Path {
        &self.dir
    }
}
