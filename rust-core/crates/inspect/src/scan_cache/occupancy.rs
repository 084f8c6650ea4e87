//! Tracks which tenant holds the most of a resource.

/// The number of units that each tenant holds, and the tenants that hold the most. Adding takes
/// constant time; removing takes at most one step per unit.
#[derive(Default)]
pub(super) struct TenantOccupancy {
    /// The holdings of the tenants, indexed by tenant number, starting at 1.
    holdings: Vec<Holding>,
    /// For each number of units, one of the tenants that hold it; 0 for none.
    first_by_units: Box<[u32]>,
    max_units: u32,
    total: u32,
}

/// The units of a tenant, and its links in the list of tenants with the same number of units.
#[derive(Clone, Copy, Default)]
struct Holding {
    units: u32,
    previous: u32,
    next: u32,
}

/// Bytes of memory for each tenant.
pub(super) const OCCUPANCY_TENANT_BYTES: usize = size_of::<Holding>();

/// Bytes of memory for each unit.
pub(super) const OCCUPANCY_UNIT_BYTES: usize = size_of::<u32>();

impl TenantOccupancy {
    /// Creates holdings for at most this many tenants, and this many units in total.
    pub(super) fn with_capacity(tenants: usize, units: usize) -> Self {
        Self {
            holdings: vec![Holding::default(); tenants],
            first_by_units: vec![0; units + 1].into(),
            max_units: 0,
            total: 0,
        }
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.holdings.capacity() * OCCUPANCY_TENANT_BYTES + size_of_val(&*self.first_by_units)
    }

    /// Returns the total number of held units.
    pub(super) fn total(&self) -> usize {
        self.total as usize
    }

    /// Returns the maximum total number of units.
    pub(super) fn capacity(&self) -> usize {
        self.first_by_units.len().saturating_sub(1)
    }

    /// Returns the tenant that has to release units so that `tenant` can hold `units` more: the
    /// tenant itself if it would then hold more than any other, or else a tenant that holds the
    /// most. 0: none.
    pub(super) fn eviction_candidate(&self, tenant: u32, units: u32) -> u32 {
        let own = self.holding(tenant).units;
        match own + units > self.max_units {
            true if own > 0 => tenant,
            true => 0,
            false => self
                .first_by_units
                .get(self.max_units as usize)
                .copied()
                .unwrap_or(0),
        }
    }

    pub(super) fn add(&mut self, tenant: u32, units: u32) {
        self.total += units;
        self.set_units(tenant, self.holding(tenant).units + units);
    }

    pub(super) fn remove(&mut self, tenant: u32, units: u32) {
        self.total = self.total.saturating_sub(units);
        self.set_units(tenant, self.holding(tenant).units.saturating_sub(units));
        while self.max_units > 0 && self.first_by_units[self.max_units as usize] == 0 {
            self.max_units -= 1;
        }
    }

    fn holding(&self, tenant: u32) -> Holding {
        let place = (tenant as usize).wrapping_sub(1);
        self.holdings.get(place).copied().unwrap_or_default()
    }

    fn holding_mut(&mut self, tenant: u32) -> Option<&mut Holding> {
        self.holdings.get_mut((tenant as usize).wrapping_sub(1))
    }

    /// Moves a tenant from the list for its previous number of units to the list for `units`.
    fn set_units(&mut self, tenant: u32, units: u32) {
        let Holding {
            units: old,
            previous: before,
            next: behind,
        } = self.holding(tenant);
        if old == units {
            return;
        }
        if old > 0 {
            match self.holding_mut(before) {
                Some(before) => before.next = behind,
                None => self.first_by_units[old as usize] = behind,
            }
            if let Some(behind) = self.holding_mut(behind) {
                behind.previous = before;
            }
        }
        let behind = match units {
            0 => 0,
            _ => std::mem::replace(&mut self.first_by_units[units as usize], tenant),
        };
        if let Some(behind) = self.holding_mut(behind) {
            behind.previous = tenant;
        }
        if let Some(holding) = self.holding_mut(tenant) {
            *holding = Holding {
                units,
                previous: 0,
                next: behind,
            };
        }
        self.max_units = self.max_units.max(units);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use proptest::prelude::*;

    use super::TenantOccupancy;

    proptest! {
        #[test]
        fn who_holds_the_most_is_known_after_every_change(
            changes in prop::collection::vec((1_u32..6, 0_u32..5, any::<bool>()), 0..60),
        ) {
            let mut holders = TenantOccupancy::with_capacity(5, 50);
            let mut held = [0_u32; 6];
            for (tenant, units, is_more) in changes {
                let sum: u32 = held.iter().sum();
                if is_more && sum + units <= 50 {
                    holders.add(tenant, units);
                    held[tenant as usize] += units;
                } else if !is_more {
                    let units = units.min(held[tenant as usize]);
                    holders.remove(tenant, units);
                    held[tenant as usize] -= units;
                }
                let most = *held.iter().max().unwrap();
                prop_assert_eq!(holders.total(), held.iter().sum::<u32>() as usize);
                for tenant in 1..6 {
                    let own = held[tenant as usize];
                    for units in 1..4 {
                        let yielding = holders.eviction_candidate(tenant, units);
                        if own + units > most {
                            prop_assert_eq!(yielding, if own > 0 { tenant } else { 0 });
                        } else {
                            prop_assert_eq!(held[yielding as usize], most);
                        }
                    }
                }
            }
        }
    }
}
