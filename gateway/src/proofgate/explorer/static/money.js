// Money as people write it: cents in lists, digits that matter in details.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const cents = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** US dollars of nanodollars, rounded to cents; null where nothing is known. */
export function dollars(nanodollars) {
  if (!Number.isFinite(nanodollars)) return null;
  const value = nanodollars / 1e9;
  if (value > 0 && value < 0.005) return "<$0.01";
  return `$${Number.isInteger(value) ? whole.format(value) : cents.format(value)}`;
}

/** The same with four digits after the point, or four that are not zero: of one exchange. */
export function exactDollars(nanodollars) {
  if (!Number.isFinite(nanodollars)) return null;
  const value = nanodollars / 1e9;
  if (value === 0) return "$0";
  return `$${Number(value >= 0.01 ? value.toFixed(4) : value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 9 })}`;
}
