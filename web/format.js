// Numbers as a reader wants them: five digits, no more zeros than needed.

// As Python's "%.5g".
export function number(value, digits = 5) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  if (!Number.isFinite(value)) return value > 0 ? "\u221e" : "-\u221e";
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(digits)))));
  const text = size < -4 || size >= digits ? value.toExponential(digits - 1) : value.toPrecision(digits);
  const [mantissa, exponent] = text.split("e");
  const short = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
  return (exponent ? `${short}e${exponent}` : short).replace("e+", "e");
}

export const probability = (value) => (value < 0.001 ? "<0.001" : value.toFixed(3));

export const interval = ([low, high], digits = 5) =>
  Number.isFinite(low) && Number.isFinite(high) ? `[${number(low, digits)}, ${number(high, digits)}]` : "not identified at this budget";

export const percent = (share) => `${number(100 * share, 4)} %`;

// Round numbers that divide an axis, about `count` of them.
export function ticks(low, high, count = 5) {
  const raw = (high - low) / count;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].find((factor) => raw <= factor * unit * 1.0001);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step || 0); // no minus zero
  return found;
}

// A date given as days since 1970, as an input element writes it.
export const dateText = (days, withTime) => new Date(Math.round(days * 86400) * 1000).toISOString().slice(0, withTime ? 16 : 10);

export const daysOf = (text) => Date.parse(text.includes("T") ? `${text}Z` : `${text}T00:00Z`) / 86400000;
