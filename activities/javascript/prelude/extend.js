// The methods that n8n gives to values: which of them a value has. Each kind is in a file of its own.
;(kit) => {
  const { n8n } = kit
  const fail = (message) => {
    throw new n8n.ExpressionError(message)
  }
  n8n.fail = fail
  const own = (value, key) => Object.hasOwn(value, key)
  const kinds = {}
  n8n.kinds = kinds
  n8n.isDateTime = (value) => globalThis.DateTime?.isDateTime(value) === true

  const isDateText = (text) =>
    /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}.\d{3}Z/.test(text) &&
    !Number.isNaN(Date.parse(text)) &&
    new Date(text).toISOString() === text

  const anything = {
    isEmpty: (value) => !value,
    isNotEmpty: (value) => Boolean(value),
  }

  /** The kind of a value. A text as JSON writes dates counts as a date, although it stays a text: so n8n does. */
  const classify = (value, name) => {
    if (Array.isArray(value)) return 'Array'
    if (typeof value === 'string')
      return name !== 'toDate' && name !== 'toDateTime' && isDateText(value) ? 'Date' : 'String'
    if (typeof value === 'number') return 'Number'
    if (typeof value === 'boolean') return 'Boolean'
    if (typeof value !== 'object' || value === null) return undefined
    return n8n.isDateTime(value) || value instanceof Date ? 'Date' : 'Object'
  }

  const find = (value, name) => {
    const methods = kinds[classify(value, name)]
    if (methods && own(methods, name)) return (...args) => methods[name](value, ...args)
    // A method of JavaScript itself, such as Math.min, or one of luxon.
    if (value && typeof value[name] === 'function') return (...args) => value[name].apply(value, args)
    return own(anything, name) ? () => anything[name](value) : undefined
  }

  const extend = (value, name, isOptional = false) => {
    const found = find(value, name)
    if (found || isOptional) return found
    if (value === undefined || value === null) fail(`${name} can't be used on ${value} value`)
    const having = ['Array', 'Date', 'Number', 'Object', 'String', 'Boolean'].filter((kind) =>
      own(kinds[kind], name),
    )
    if (having.length === 1) fail(`${name}() is only callable on type "${having[0]}"`)
    const last = having.pop()
    return fail(
      `${name}() is only callable on types ${having.map((kind) => `"${kind}"`).join(', ')}, and "${last}"`,
    )
  }
  kit.define('$$extend', extend)
}
