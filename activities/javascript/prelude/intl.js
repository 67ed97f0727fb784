// Intl, which the engine does not have, by questions to the process around it. Only JSON goes there and back.
;(kit) => {
  const ask = (kind, locales, options, method, args = []) => {
    const { value, error } = kit.host('intl', { kind, locales, options, method, args })
    if (error !== undefined) throw new RangeError(error)
    return value
  }

  const toTime = (date) => {
    const time = date === undefined ? Date.now() : Number(date)
    if (!Number.isFinite(time)) throw new RangeError('Invalid time value')
    return time
  }
  const toText = (value) => (typeof value === 'bigint' ? String(value) : Number(value))
  // JSON has neither of these.
  const toAmount = (value) => {
    const amount = toText(value)
    return typeof amount === 'number' && !Number.isFinite(amount) ? { special: String(amount) } : amount
  }

  /** Makes one of Intl's classes. `methods`: how the arguments of each of its methods become JSON. */
  const define = (kind, methods) => {
    const Formatter = function (locales, options) {
      if (!new.target) return new Formatter(locales, options)
      const call =
        (method) =>
        (...given) =>
          ask(kind, locales, options, method, methods[method](...given))
      // A fault of the locale or of the options is thrown here, as in other engines.
      const resolved = ask(kind, locales, options, 'resolvedOptions')
      this.resolvedOptions = () => ({ ...resolved })
      for (const method of Object.keys(methods)) this[method] = call(method)
    }
    Formatter.supportedLocalesOf = (locales) =>
      ask(kind, undefined, undefined, 'supportedLocalesOf', [locales])
    return Formatter
  }

  const dates = (...given) => given.map(toTime)
  const time = (date) => [toTime(date)]
  const amount = (value) => [toAmount(value)]
  const list = (values) => [[...values].map(String)]
  const relative = (value, unit) => [Number(value), String(unit)]

  globalThis.Intl = {
    DateTimeFormat: define('DateTimeFormat', {
      format: time,
      formatToParts: time,
      formatRange: dates,
      formatRangeToParts: dates,
    }),
    NumberFormat: define('NumberFormat', { format: amount, formatToParts: amount }),
    RelativeTimeFormat: define('RelativeTimeFormat', { format: relative, formatToParts: relative }),
    ListFormat: define('ListFormat', { format: list, formatToParts: list }),
    PluralRules: define('PluralRules', { select: amount }),
    Collator: define('Collator', { compare: (a, b) => [String(a), String(b)] }),
    DisplayNames: define('DisplayNames', { of: (code) => [String(code)] }),
    getCanonicalLocales: (locales) => ask('Intl', undefined, undefined, 'getCanonicalLocales', [locales]),
    supportedValuesOf: (key) => ask('Intl', undefined, undefined, 'supportedValuesOf', [String(key)]),
  }

  const give = (target, methods) => {
    for (const [name, value] of Object.entries(methods))
      Object.defineProperty(target, name, { value, writable: true, configurable: true })
  }
  const DAY = { year: 'numeric', month: 'numeric', day: 'numeric' }
  const CLOCK = { hour: 'numeric', minute: 'numeric', second: 'numeric' }
  const FIELDS =
    'weekday year month day dayPeriod hour minute second fractionalSecondDigits dateStyle timeStyle'
  const named = (options, fields) => fields.some((field) => options?.[field] !== undefined)
  const writeDate = (needed, added) =>
    function (locales, options) {
      if (Number.isNaN(this.getTime())) return 'Invalid Date'
      const full = named(options, needed) ? options : { ...options, ...added }
      return ask('DateTimeFormat', locales, full, 'format', [this.getTime()])
    }
  const fields = FIELDS.split(' ')
  give(Date.prototype, {
    toLocaleString: writeDate(fields, { ...DAY, ...CLOCK }),
    toLocaleDateString: writeDate(['weekday', 'year', 'month', 'day', 'dateStyle', 'timeStyle'], DAY),
    toLocaleTimeString: writeDate([...fields.slice(4), 'timeStyle'], CLOCK),
  })
  give(Number.prototype, {
    toLocaleString(locales, options) {
      return ask('NumberFormat', locales, options, 'format', amount(Number(this)))
    },
  })
  give(BigInt.prototype, {
    toLocaleString(locales, options) {
      return ask('NumberFormat', locales, options, 'format', [String(this)])
    },
  })
  give(String.prototype, {
    localeCompare(other, locales, options) {
      return ask('Collator', locales, options, 'compare', [String(this), String(other)])
    },
    toLocaleUpperCase(locales) {
      return locales === undefined
        ? this.toUpperCase()
        : ask('String', locales, undefined, 'upper', [String(this)])
    },
    toLocaleLowerCase(locales) {
      return locales === undefined
        ? this.toLowerCase()
        : ask('String', locales, undefined, 'lower', [String(this)])
    },
  })
  give(Array.prototype, {
    toLocaleString(...given) {
      return this.map((value) => (value == null ? '' : value.toLocaleString(...given))).join(',')
    },
  })

  // Other engines read many more dates, such as `Jan 5, 2024`: the one around this is asked.
  const ISO =
    /^(?:[+-]\d{6}|\d{4})(?:-\d\d(?:-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)?)?)?)?$/
  const Native = Date
  const parse = (text) => {
    const written = String(text)
    return ISO.test(written) ? Native.parse(written) : (kit.host('date', written) ?? Number.NaN)
  }
  globalThis.Date = new Proxy(Native, {
    construct(target, given, made) {
      const [only] = given
      const isText = given.length === 1 && typeof only === 'string'
      return Reflect.construct(target, isText ? [parse(only)] : given, made)
    },
    get: (target, name) => (name === 'parse' ? parse : Reflect.get(target, name)),
  })
  Native.prototype.constructor = globalThis.Date
}
