//! A position between two records of a log, with the state of the records before it.

use crate::IndexError;
use base64::{Engine, engine::general_purpose::STANDARD};
use proofgate_evidence::log_reader::ResumePosition;
use proofgate_ledger::{Hash, Mmr};

/// The position of a reader in a log. Its text form is one line: records, segment, offset and chain
/// in decimal, and the peaks of the range in base64, oldest first.
#[derive(Clone, Debug)]
pub struct LogCursor {
    pub(crate) mmr: Mmr,
    pub(crate) resume: ResumePosition,
}

impl LogCursor {
    /// Returns the number of records before the position.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.mmr.size()
    }

    /// Returns the text form of the cursor.
    #[must_use]
    pub fn to_text(&self) -> String {
        let ResumePosition {
            segment,
            offset,
            seq,
            prev_crc: chain,
        } = self.resume;
        let peaks = STANDARD.encode(self.mmr.peaks().concat());
        format!("{seq} {segment} {offset} {chain} {peaks}")
    }

    /// Parses the text form of a cursor.
    ///
    /// # Errors
    /// [`IndexError::InvalidCursor`] for anything that [`Self::to_text`] would not write.
    pub fn parse(text: &str) -> Result<Self, IndexError> {
        let parts: Vec<&str> = text.split(' ').collect();
        let [seq, segment, offset, chain, peaks] = parts[..] else {
            return Err(IndexError::InvalidCursor("it does not have five parts"));
        };
        let number = |text: &str| {
            text.parse::<u64>()
                .map_err(|_| IndexError::InvalidCursor("a number is not valid"))
        };
        let resume = ResumePosition {
            seq: number(seq)?,
            segment: number(segment)?,
            offset: number(offset)?,
            prev_crc: chain
                .parse()
                .map_err(|_| IndexError::InvalidCursor("a number is not valid"))?,
        };
        let bytes = STANDARD
            .decode(peaks)
            .map_err(|_| IndexError::InvalidCursor("the peaks are not base64"))?;
        let (whole, rest) = bytes.as_chunks::<32>();
        if !rest.is_empty() {
            return Err(IndexError::InvalidCursor("a peak does not have 32 bytes"));
        }
        let peaks: Vec<Hash> = whole.to_vec();
        let mmr = Mmr::from_peaks(resume.seq, peaks)
            .map_err(|_| IndexError::InvalidCursor("the peaks do not match the number of records"))?;
        Ok(Self { mmr, resume })
    }
}
