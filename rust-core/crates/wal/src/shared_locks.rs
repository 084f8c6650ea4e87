//! Determines whether a lock on a file is visible to every process that could write to the file.
//!
//! Only this kernel can write to a local file system. A network file system may also be mounted on
//! another node. Its `flock` may be local to each node (`nolock`, `local_lock`), or block forever
//! on a lock manager that cannot be reached (NFSv3). Locks on an unknown file system are assumed to
//! be local to each node.

use rustix::fs::{fstat, fstatfs, major, minor};
use std::fs::File;

/// Magic numbers of `statfs(2)`: ext4, xfs, btrfs, tmpfs, ramfs, overlayfs, f2fs, ZFS, bcachefs, and CephFS, whose
/// locks are cluster-wide.
const SHARED_LOCK_FILESYSTEMS: [u32; 10] = [
    0xEF53,
    0x5846_5342,
    0x9123_683E,
    0x0102_1994,
    0x8584_58F6,
    0x794C_7630,
    0xF2F5_2010,
    0x2FC1_2FC1,
    0xCA45_1A4E,
    0x00C3_6400,
];
const NFS: u32 = 0x6969;

/// Returns whether locks on the file system of an open directory are visible to every possible
/// writer.
pub(crate) fn has_shared_locks(directory: &File) -> bool {
    let Ok(found) = fstatfs(directory) else {
        return false;
    };
    // The width of the type differs between architectures; the magic numbers have 32 bits.
    #[expect(clippy::cast_possible_truncation, reason = "the values fit into 32 bits")]
    let magic = found.f_type as u32;
    if SHARED_LOCK_FILESYSTEMS.contains(&magic) {
        return true;
    }
    magic == NFS && nfs_options(directory).is_some_and(|options| has_nfs_server_locks(&options))
}

/// Returns the options of the NFS mount that contains a directory (proc_pid_mountinfo(5), the last
/// field).
fn nfs_options(directory: &File) -> Option<String> {
    let device = fstat(directory).ok()?.st_dev;
    let device = format!("{}:{}", major(device), minor(device));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let of_device = mounts
        .lines()
        .find(|line| line.split(' ').nth(2) == Some(device.as_str()))?;
    Some(of_device.rsplit(' ').next()?.to_owned())
}

fn has_nfs_server_locks(options: &str) -> bool {
    let mut options = options.split(',');
    let version_4 = options.clone().any(|option| option.starts_with("vers=4"));
    version_4
        && options.all(|option| {
            option != "nolock"
                && !matches!(option.strip_prefix("local_lock="), Some(local) if local != "none")
        })
}

#[cfg(test)]
mod tests {
    use super::{has_nfs_server_locks, has_shared_locks};

    #[test]
    fn locks_on_a_file_system_of_this_kernel_are_seen_by_everybody() {
        let directory = std::fs::File::open("/dev/shm").unwrap();
        assert!(has_shared_locks(&directory));
        let proc = std::fs::File::open("/proc").unwrap();
        assert!(!has_shared_locks(&proc), "what is not known is not believed");
    }

    #[test]
    fn nfs_counts_only_where_the_server_keeps_the_locks_itself() {
        assert!(has_nfs_server_locks(
            "rw,vers=4.2,rsize=1048576,local_lock=none,addr=192.0.2.1"
        ));
        assert!(has_nfs_server_locks("rw,vers=4.1,hard"));
        assert!(!has_nfs_server_locks("rw,vers=4.2,local_lock=flock"));
        assert!(!has_nfs_server_locks("rw,vers=4.0,local_lock=all"));
        assert!(!has_nfs_server_locks("rw,vers=3,nolock,local_lock=all"));
        assert!(!has_nfs_server_locks("rw,vers=3,local_lock=none"));
        assert!(!has_nfs_server_locks("rw"));
    }
}
