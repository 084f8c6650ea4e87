//! Key lineages: a lineage is a known key with the keys before and after it according to statements
//! of succession.

use crate::{KeySuccession, LedgerError, LineageKey, SigningKey, VerifyingKey};

/// Most keys in a lineage.
pub const MAX_KEYS: usize = 64;

impl VerifyingKey {
    /// Parses the text of a key file: a vkey in the first line, followed by statements of succession, if any.
    ///
    /// # Errors
    /// Same as [`Self::from_text`], [`KeySuccession::verify`] and [`Self::with_successions`].
    pub fn from_file_text(text: &str) -> Result<Self, LedgerError> {
        let (vkey, notes) = split_key_file(text);
        Self::from_text(vkey)?.with_successions(&read_notes(notes)?)
    }

    /// Returns this key with the keys before and after it according to the statements. Signatures
    /// by any of them then count as signatures by this key, within the validity period of the
    /// signer. Keys that are already in the lineage remain in it. Statements that do not connect to
    /// this key are ignored, because anyone can make keys of the same name and statements about
    /// them.
    ///
    /// If two statements name the same two keys, the earlier end of validity counts.
    ///
    /// # Errors
    /// [`LedgerError::ConflictingSuccessions`] when a key of the lineage has two successors or two predecessors,
    /// succeeds itself, or there are more than 64 keys.
    pub fn with_successions(&self, successions: &[KeySuccession]) -> Result<Self, LedgerError> {
        let known = self.lineage();
        let mut steps: Vec<KeySuccession> = Vec::new();
        let own = known.windows(2).filter_map(|pair| {
            Some(KeySuccession {
                old_key: pair[0].key.clone(),
                new_key: pair[1].key.clone(),
                signed_at: 0,
                valid_until: pair[0].valid_until?,
            })
        });
        for step in own.chain(successions.iter().cloned()) {
            if step.old_key.name() != self.name() {
                continue;
            }
            match steps
                .iter_mut()
                .find(|known| (&known.old_key, &known.new_key) == (&step.old_key, &step.new_key))
            {
                Some(known) => known.valid_until = known.valid_until.min(step.valid_until),
                None => steps.push(step),
            }
        }
        let mut line = vec![self.without_lineage()];
        while let Some(step) = find_single(&steps, |step| step.old_key == line[line.len() - 1])? {
            check_addition(&line, &step.new_key)?;
            line.push(step.new_key.clone());
        }
        while let Some(step) = find_single(&steps, |step| step.new_key == line[0])? {
            check_addition(&line, &step.old_key)?;
            line.insert(0, step.old_key.clone());
        }
        // The walk checked successors only forwards and predecessors only backwards; check every key for forks in both
        // directions.
        let mut found = Vec::with_capacity(line.len());
        for key in line {
            find_single(&steps, |step| step.new_key == key)?;
            let until = find_single(&steps, |step| step.old_key == key)?.map(|step| step.valid_until);
            found.push(LineageKey {
                key,
                valid_until: until,
            });
        }
        Ok(self.with_lineage(found))
    }

    /// Returns the newest key of the lineage, which signs all new statements, without its lineage.
    #[must_use]
    pub fn newest_key(&self) -> Self {
        self.lineage()
            .pop()
            .map_or_else(|| self.without_lineage(), |last| last.key)
    }

    /// Returns the position of a key in the lineage (0 is the oldest key). The key may have another
    /// name.
    #[must_use]
    pub fn position_of(&self, key: &Self) -> Option<usize> {
        self.lineage().iter().position(|known| known.key.is_same_key(key))
    }
}

impl SigningKey {
    /// Parses the text of a key file: a private key in the first line, optionally the previous
    /// private key in the second, then any statements of succession. The statements define the
    /// lineage of the public half.
    ///
    /// # Errors
    /// Same as [`Self::from_rotation_text`].
    pub fn from_file_text(text: &str) -> Result<Self, LedgerError> {
        Ok(Self::from_rotation_text(text)?.0)
    }

    /// Same as [`Self::from_file_text`], and also returns the previous key, if the file has one.
    ///
    /// # Errors
    /// Same as [`Self::from_text`], [`KeySuccession::verify`] and [`VerifyingKey::with_successions`];
    /// [`LedgerError::ConflictingSuccessions`] when no statement says that the first key succeeds the second.
    pub fn from_rotation_text(text: &str) -> Result<(Self, Option<Self>), LedgerError> {
        Self::from_rotation_text_with(text, &Self::from_text)
    }

    /// Same as [`Self::from_rotation_text`], but parses the key lines with `read`. A key line
    /// starts with `PRIVATE+KEY+`, or with `SIGNER` and a space.
    ///
    /// # Errors
    /// Same as [`Self::from_rotation_text`], and the errors of `read`.
    pub fn from_rotation_text_with(
        text: &str,
        read: &dyn Fn(&str) -> Result<Self, LedgerError>,
    ) -> Result<(Self, Option<Self>), LedgerError> {
        let (key, behind) = split_key_file(text);
        let key = read(key)?;
        let (former, notes) = match behind.starts_with("PRIVATE+KEY+") || behind.starts_with("SIGNER ") {
            true => split_key_file(behind),
            false => ("", behind),
        };
        let public = key.verifying_key().with_successions(&read_notes(notes)?)?;
        let former = Some(former).filter(|former| !former.is_empty());
        let former = former.map(read).transpose()?;
        if let Some(former) = &former {
            let place = public.position_of(&former.verifying_key());
            let follows = former.name() == key.name()
                && place.is_some_and(|place| public.position_of(&public) == Some(place + 1));
            if !follows {
                return Err(LedgerError::ConflictingSuccessions(
                    "no statement says that the first key succeeds the second",
                ));
            }
        }
        Ok((key.with_public_key(&public), former))
    }
}

/// Splits a key file into its first line and the rest.
fn split_key_file(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (key, behind) = text.split_once('\n').unwrap_or((text, ""));
    (key.trim_end(), behind.trim_start())
}

fn read_notes(notes: &str) -> Result<Vec<KeySuccession>, LedgerError> {
    let notes = KeySuccession::split_notes(notes);
    notes.iter().map(|note| KeySuccession::verify(note)).collect()
}

fn check_addition(line: &[VerifyingKey], key: &VerifyingKey) -> Result<(), LedgerError> {
    if line.contains(key) {
        return Err(LedgerError::ConflictingSuccessions("a key succeeds itself"));
    }
    match line.len() < MAX_KEYS {
        true => Ok(()),
        false => Err(LedgerError::ConflictingSuccessions(
            "the key succession has more than 64 keys",
        )),
    }
}

/// Returns the only matching statement, if there is one.
fn find_single(
    successions: &[KeySuccession],
    predicate: impl Fn(&KeySuccession) -> bool,
) -> Result<Option<&KeySuccession>, LedgerError> {
    let mut found = successions.iter().filter(|step| predicate(step));
    let first = found.next();
    match found.next() {
        None => Ok(first),
        Some(_) => Err(LedgerError::ConflictingSuccessions(
            "a key has two successors or two predecessors: the key succession forks",
        )),
    }
}

#[cfg(test)]
mod tests;
