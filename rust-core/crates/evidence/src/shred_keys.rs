//! A directory of tenants' shred keys, with one file for each tenant. This directory is never on
//! the ledger's volume.
//!
//! A file is named after its tenant. For a tenant `<namespace>/<name>`, the file name is
//! `_<namespace>_<name>`, because a key of a Secret must not contain a slash. Names that start with
//! a dot are skipped, because they belong to the mount or to files that are being written.

use crate::{EvidenceError, ReadStorage, read_full};
use proofgate_ledger::{MAX_SHRED_KEYS, ShredKey, ShredKeyId};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Length of a line of base64, including its newline.
const LINE_LEN: usize = 45;

/// The shred keys of tenants. `Debug` shows no secret.
#[derive(Debug, Default)]
pub struct ShredKeys {
    tenants: HashMap<Box<str>, Box<[Arc<ShredKey>]>>,
}

impl ShredKeys {
    /// Reads a directory of key files.
    ///
    /// # Errors
    /// [`EvidenceError::ShredKeys`] for a file that holds no keys, or more than allowed; [`EvidenceError::Io`].
    pub fn read(storage: &dyn ReadStorage, dir: &Path) -> Result<Self, EvidenceError> {
        let names = storage.list(dir).map_err(EvidenceError::io("list", dir))?;
        let files = names
            .iter()
            .filter_map(|name| Some((tenant_from_file(name)?, name)));
        files
            .map(|(tenant, name)| Ok((tenant.into_owned(), read_file(storage, &dir.join(name))?)))
            .collect()
    }

    /// Returns the key for a tenant's new exchanges; `None` if the tenant has no key.
    #[must_use]
    pub fn current_key(&self, tenant: &str) -> Option<&Arc<ShredKey>> {
        self.tenants.get(tenant)?.first()
    }

    /// Returns the key of a tenant with this id.
    #[must_use]
    pub fn find(&self, tenant: &str, id: ShredKeyId) -> Option<&Arc<ShredKey>> {
        self.tenants.get(tenant)?.iter().find(|key| key.id() == id)
    }

    /// Returns each tenant with the ids of its keys, newest first. The tenants are in no particular
    /// order.
    pub fn ids(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = ShredKeyId>)> {
        let tenants = self.tenants.iter();
        tenants.map(|(tenant, keys)| (&**tenant, keys.iter().map(|key| key.id())))
    }
}

impl FromIterator<(String, Vec<Arc<ShredKey>>)> for ShredKeys {
    /// Collects tenants, each with its keys, newest first.
    fn from_iter<I: IntoIterator<Item = (String, Vec<Arc<ShredKey>>)>>(tenants: I) -> Self {
        let tenants = tenants.into_iter();
        Self {
            tenants: tenants
                .map(|(tenant, keys)| (tenant.into(), keys.into()))
                .collect(),
        }
    }
}

/// Returns the name of a tenant's file.
#[must_use]
pub fn tenant_file(tenant: &str) -> Cow<'_, str> {
    match tenant.split_once('/') {
        Some((namespace, name)) => format!("_{namespace}_{name}").into(),
        None => tenant.into(),
    }
}

/// Returns the tenant to which a file belongs; `None` when it belongs to no tenant.
fn tenant_from_file(file: &str) -> Option<Cow<'_, str>> {
    let is_name = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    if let Some(sharded) = file.strip_prefix('_') {
        let (namespace, name) = sharded.split_once('_')?;
        let both = is_name(namespace) && is_name(name) && !name.contains('_');
        return both.then(|| format!("{namespace}/{name}").into());
    }
    is_name(file).then_some(file.into())
}

fn read_file(storage: &dyn ReadStorage, path: &Path) -> Result<Vec<Arc<ShredKey>>, EvidenceError> {
    let refused = |reason: String| EvidenceError::ShredKeys {
        path: path.to_owned(),
        reason,
    };
    let file = storage.open(path).map_err(EvidenceError::io("open", path))?;
    let mut bytes = Zeroizing::new([0; MAX_SHRED_KEYS * LINE_LEN + 1]);
    let read = read_full(&*file, &mut bytes[..], 0).map_err(EvidenceError::io("read", path))?;
    if read == bytes.len() {
        return Err(refused(format!("it contains more than {MAX_SHRED_KEYS} keys")));
    }
    let text = std::str::from_utf8(&bytes[..read]).map_err(|_| refused("it is not UTF-8".to_owned()))?;
    ShredKey::parse_file(text).map_err(|error| refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::{tenant_file, tenant_from_file};
    use proptest::prelude::*;

    #[test]
    fn what_is_nobodys_file_is_passed_over() {
        for name in [
            "",
            "..data",
            "..2026_11_26",
            ".tmp",
            "lost+found",
            "_a",
            "_a_",
            "__a",
            "_a_b_c",
            "-a",
            "a b",
        ] {
            assert_eq!(tenant_from_file(name), None, "{name}");
        }
        assert_eq!(tenant_from_file("team_acme").as_deref(), Some("team_acme"));
        assert_eq!(tenant_from_file("_team_acme").as_deref(), Some("team/acme"));
    }

    proptest! {
        #[test]
        fn each_tenant_has_a_file_of_its_own(tenant in "[A-Za-z0-9][A-Za-z0-9._-]{0,8}|[a-z0-9][a-z0-9-]{0,8}/[a-z0-9][a-z0-9.-]{0,8}") {
            let file = tenant_file(&tenant);
            prop_assert_eq!(tenant_from_file(&file), Some(tenant.as_str().into()));
        }
    }
}
