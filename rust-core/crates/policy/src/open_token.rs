//! Undecided part of the token at the end of a text, which can still become part of an encoded text (SEMANTICS.md, "Derived
//! texts").

use crate::decode::{self, MIN_BASE64};
use crate::fold_table::plain_byte;
use crate::hold::HoldDetector;
use crate::scan::Evaluation;
use crate::{EvaluationError, Scratch, View};

impl Evaluation<'_> {
    /// Returns the first position of `token`, which ends with the text so far, where a match can begin in the text that it
    /// may encode; its end if there is none.
    pub(crate) fn first_undecided_in_open_token(
        &mut self,
        hold: &HoldDetector,
        token: &[u8],
    ) -> Result<usize, EvaluationError> {
        let Scratch {
            hold_caches: holds,
            decoded: [buffer, _],
            ..
        } = &mut *self.scratch;
        let clock = &mut self.clock;
        clock.charge_pass(token.len())?;
        let escape = token.iter().position(|byte| matches!(byte, b'%' | b'\\'));
        let plain = &token[..escape.unwrap_or(token.len())];
        if plain.iter().any(|byte| matches!(byte, b'+' | b'~')) {
            // In the decoded text, these can be different characters.
            return Ok(0);
        }
        let mut at = 0;
        while at < plain.len() {
            let length = decode::run_length(&plain[at..]);
            let is_open = if at + length < plain.len() {
                length >= MIN_BASE64
            } else {
                can_become_text(&plain[at..], buffer)
            };
            if is_open {
                break;
            }
            at += length + 1;
        }
        // Escapes leave the text before them unchanged.
        let run = at.min(plain.len());
        let caches = Scratch::caches_for(holds, hold);
        let in_text = hold.first_start(View::Text, caches, plain, 0, clock)?;
        buffer.clear();
        buffer.extend(plain.iter().map(|byte| plain_byte(*byte)));
        let in_copy = hold.first_start(View::Folded, caches, buffer, 0, clock)?;
        Ok(run.min(in_text).min(in_copy))
    }
}

/// Whether a run that begins with `run` can decode to UTF-8.
fn can_become_text(run: &[u8], buffer: &mut Vec<u8>) -> bool {
    if run.is_empty() {
        return false;
    }
    // A run that ends here is decoded without the bits of its incomplete last byte.
    let is_whole = run.len() >= MIN_BASE64;
    let digits = decode::hex_digits(run);
    let is_hex = digits.iter().all(|digit| decode::is_hex(*digit));
    buffer.clear();
    if is_hex {
        decode::decode_hex(digits, buffer);
        let last = digits.last().filter(|_| digits.len() % 2 == 1);
        let is_text = is_whole && std::str::from_utf8(buffer).is_ok();
        if is_text || is_utf8_prefix(buffer, last.map(|digit| (decode::hex_value(*digit) << 4, 4))) {
            return true;
        }
        buffer.clear();
    }
    decode::decode_base64(run, buffer);
    // This many bits of the last digit belong to an incomplete byte.
    let last = run.last().filter(|_| !run.len().is_multiple_of(4));
    let known = last.map(|digit| {
        let bits = 8 - 2 * (run.len() % 4) as u32;
        ((decode::sextet(*digit) << (8 - bits)) as u8, bits)
    });
    (is_whole && std::str::from_utf8(buffer).is_ok()) || is_utf8_prefix(buffer, known)
}

/// Whether UTF-8 can begin with `bytes`. `last`: an incomplete byte after them, and the number of
/// its highest bits that are known.
fn is_utf8_prefix(bytes: &[u8], last: Option<(u8, u32)>) -> bool {
    let begins = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    let unfinished = match std::str::from_utf8(bytes) {
        Ok(_) => &[],
        Err(error) if error.error_len().is_none() => &bytes[error.valid_up_to()..],
        Err(_) => return false,
    };
    let Some((high, known)) = last else {
        return true;
    };
    let mut character = [0; 4];
    character[..unfinished.len()].copy_from_slice(unfinished);
    (0..=u8::MAX >> known).any(|low| {
        character[unfinished.len()] = high | low;
        begins(&character[..=unfinished.len()])
    })
}
