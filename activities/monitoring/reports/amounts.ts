const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 2 })
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const DOLLARS = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD' })
const CENTS = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', maximumSignificantDigits: 2 })

/** `1,234`. */
export function showNumber(value: number): string {
  return WHOLE.format(value)
}

/** `1.2K`. */
export function showCompact(value: number): string {
  return COMPACT.format(value)
}

/** US dollars, less than a cent with the digits that it has; what is not known is said. */
export function showCost(value: number | null): string {
  if (value === null) return 'not known'
  return value > 0 && value < 0.01 ? CENTS.format(value) : DOLLARS.format(value)
}

/** How much more or less a value is than before; what cannot be compared is said. */
export function showChange(value: number | null, before: number | null): string {
  if (value === null || before === null) return ''
  if (value === before) return 'as before'
  if (before === 0) return 'none before'
  const percent = (100 * (value - before)) / before
  const shown = Math.abs(percent) < 10 ? percent.toFixed(1) : percent.toFixed(0)
  return `${percent > 0 ? '▲ +' : '▼ −'}${shown.replace('-', '')} % vs before`
}

export function sumTokens({
  inputTokens,
  outputTokens,
}: {
  inputTokens: number
  outputTokens: number
}): number {
  return inputTokens + outputTokens
}
