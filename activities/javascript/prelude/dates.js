// n8n's methods of dates: of luxon's DateTime, of JavaScript's Date, and of texts as JSON writes dates.
;(kit) => {
  const { kinds, fail, isDateTime } = kit.n8n
  const DURATIONS = [
    'milliseconds',
    'seconds',
    'minutes',
    'hours',
    'days',
    'weeks',
    'months',
    'quarters',
    'years',
  ]
  const PARTS = 'day week month year hour minute second millisecond weekNumber yearDayNumber weekday'.split(
    ' ',
  )
  const SHORT = {
    ms: 'millisecond',
    sec: 'second',
    secs: 'second',
    min: 'minute',
    mins: 'minute',
    hr: 'hour',
    hrs: 'hour',
  }
  /** The unit that luxon adds: `days` for `day` or `hours` for `hrs`. */
  const manyOf = (unit) => {
    const one = SHORT[unit] ?? unit
    return DURATIONS.includes(`${one}s`) ? `${one}s` : one
  }
  const oneOf = (unit) =>
    SHORT[unit] ?? (DURATIONS.includes(unit) && !/^(weeks|quarters)$/.test(unit) ? unit.slice(0, -1) : unit)

  const toLuxon = (date) => (isDateTime(date) ? date : globalThis.DateTime.fromJSDate(date))
  /** A Date stays a Date. */
  const change = (date, make) => (isDateTime(date) ? make(date) : make(toLuxon(date)).toJSDate())

  const read = (value) => {
    const { DateTime } = globalThis
    if (isDateTime(value)) return value
    if (value instanceof Date) return DateTime.fromJSDate(value)
    if (typeof value !== 'string') return undefined
    const date = DateTime.fromJSDate(new Date(value))
    return date.isValid ? date : undefined
  }

  const move =
    (direction) =>
    (date, ...given) => {
      if (given.length === 1) return change(date, (from) => from[direction](given[0]))
      const [amount = 0, unit = 'minutes'] = given
      return change(date, (from) => from[direction]({ [manyOf(unit)]: amount }))
    }

  const diffTo = (date, other, unit = 'days') => {
    const units = Array.isArray(unit) ? (unit.length > 0 ? unit : ['days']) : [unit]
    const unknown = units.find((each) => !DURATIONS.includes(each) && !PARTS.includes(each))
    if (unknown !== undefined)
      fail(`Unsupported unit '${unknown}'. Supported: ${DURATIONS.map((each) => `'${each}'`).join(', ')}.`)
    const end = typeof other === 'string' ? kit.n8n.readDateTime(other) : toLuxon(other)
    const difference = date.diff(end, units)
    return units.length > 1 ? difference.toObject() : difference.as(units[0])
  }
  const toInt = (date) => (isDateTime(date) ? date.toMillis() : date.getTime())

  kinds.Date = {
    beginningOf: (date, unit = 'week') => change(date, (from) => from.startOf(oneOf(unit))),
    endOfMonth: (date) => change(date, (from) => from.endOf('month')),
    extract(date, part = 'week') {
      if (part !== 'yearDayNumber') return toLuxon(date).get(part === 'week' ? 'weekNumber' : oneOf(part))
      const day = isDateTime(date) ? date.toJSDate() : date
      const first = new Date(day.getFullYear(), 0, 0)
      const minutes = first.getTimezoneOffset() - day.getTimezoneOffset()
      return Math.floor((day.getTime() - first.getTime() + minutes * 60_000) / 86_400_000)
    },
    isBetween(date, ...given) {
      if (given.length !== 2) fail('isBetween(): expected exactly two args')
      const [first, second] = given.map(read)
      if (!first || !second) return undefined
      return first > second ? second < date && date < first : second > date && date > first
    },
    isDst: (date) => toLuxon(date).isInDST,
    isInLast(date, amount = 0, unit = 'minutes') {
      const { DateTime } = globalThis
      const at = toLuxon(date)
      return DateTime.now().minus({ [manyOf(unit)]: amount }) <= at && at <= DateTime.now()
    },
    isWeekend: (date) => [6, 7].includes(toLuxon(date).weekday),
    minus: move('minus'),
    plus: move('plus'),
    format: (date, format, options = {}) => toLuxon(date).toFormat(format, { ...options }),
    toDateTime: (date) => toLuxon(date),
    diffTo,
    diffToNow: (date, unit) => diffTo(date, globalThis.DateTime.now(), unit),
    toInt,
    toFloat: toInt,
    toBoolean: () => undefined,
    isEmpty: () => false,
    isNotEmpty: () => true,
  }
}
