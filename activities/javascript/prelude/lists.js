// n8n's methods of arrays.
;(kit) => {
  const { kinds, fail } = kit.n8n
  const own = (value, key) => Object.hasOwn(value, key)
  const isObject = (value) => typeof value === 'object' && value !== null

  /** Whether two values are the same all through. */
  const isEqual = (a, b) => {
    if (Object.is(a, b) || (a === 0 && b === 0)) return true
    if (!isObject(a) || !isObject(b) || Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false
    if (a instanceof Date) return isEqual(a.getTime(), b.getTime())
    const keys = Object.keys(a)
    if (Array.isArray(a) && a.length !== b.length) return false
    return (
      keys.length === Object.keys(b).length && keys.every((key) => own(b, key) && isEqual(a[key], b[key]))
    )
  }
  /** Whether a list has a value. Simple values are found without a look at each. */
  const finder = (list) => {
    const simple = new Set(list.filter((value) => !isObject(value)))
    const objects = list.filter(isObject)
    return (value) => (isObject(value) ? objects.some((other) => isEqual(value, other)) : simple.has(value))
  }
  const distinct = (list, view = (value) => value) => {
    const simple = new Set()
    const seen = []
    return list.filter((value) => {
      const viewed = view(value)
      if (!isObject(viewed)) return !simple.has(viewed) && simple.add(viewed)
      if (seen.some((other) => isEqual(viewed, other))) return false
      seen.push(viewed)
      return true
    })
  }
  const unique = (list, ...fields) =>
    distinct(list, (value) =>
      fields.length > 0 && isObject(value)
        ? Object.fromEntries(fields.map((field) => [field, own(value, field) ? value[field] : undefined]))
        : value,
    )

  const numbers = (list, name) => {
    if (list.some((value) => typeof value !== 'number')) fail(`${name}(): all array elements must be numbers`)
    return list
  }
  const sum = (list, name = 'sum') => numbers(list, name).reduce((total, value) => total + value, 0)

  const compactObject = (object) => {
    const entries = Object.entries(object).flatMap(([key, value]) => {
      if (value === null || value === undefined || value === 'nil' || value === '') return []
      if (typeof value !== 'object') return [[key, value]]
      return Object.keys(value).length === 0 ? [] : [[key, compactObject(value)]]
    })
    return Object.fromEntries(entries)
  }

  /** The first object's fields win. */
  const merged = (first, second) => {
    const made = { ...first }
    for (const [key, value] of Object.entries(second ?? {})) if (!own(made, key)) made[key] = value
    return made
  }

  const demandList = (value, name, example) => {
    if (!Array.isArray(value)) fail(`${name}(): expected array arg, e.g. .${name}(${example})`)
    return value
  }
  const OBJECTS = '[{ id: 1, otherValue: 3 }]'
  const NUMBERS = '[1, 2, 3, 4]'

  const chunk = (list, size) => {
    if (typeof size !== 'number' || size === 0) fail('chunk(): expected non-zero numeric arg, e.g. .chunk(5)')
    const chunks = []
    for (let at = 0; at < list.length; at += size) chunks.push(list.slice(at, at + size))
    return chunks
  }
  const nothing = () => undefined

  kinds.Array = {
    first: (list) => list[0],
    last: (list) => list[list.length - 1],
    isEmpty: (list) => list.length === 0,
    isNotEmpty: (list) => list.length > 0,
    reverse: (list) => [...list].reverse(),
    append: (list, ...values) => list.concat(values),
    randomItem: (list) => list[Math.floor(Math.random() * list.length)],
    unique,
    removeDuplicates: unique,
    sum: (list) => sum(list),
    min: (list) => Math.min(...numbers(list, 'min')),
    max: (list) => Math.max(...numbers(list, 'max')),
    average: (list) => (numbers(list, 'average').length === 0 ? 0 : sum(list) / list.length),
    pluck(list, ...fields) {
      if (fields.length === 0) return list
      return list.flatMap((value) => {
        if (!isObject(value)) return []
        const found = Object.keys(value).flatMap((key) =>
          fields.flatMap((field) => (field === key ? [value[key]] : [])),
        )
        return found.length > 1 ? [found] : found
      })
    },
    compact(list) {
      const filled = list.filter((value) => {
        if (isObject(value)) return Object.keys(value).length > 0
        return value !== null && value !== undefined && value !== 'nil' && value !== ''
      })
      return filled.map((value) => (isObject(value) ? compactObject(value) : value))
    },
    smartJoin(list, keyField, valueField) {
      if (!keyField || !valueField || typeof keyField !== 'string' || typeof valueField !== 'string')
        fail('smartJoin(): expected two string args, e.g. .smartJoin("name", "value")')
      const found = list.filter((value) => isObject(value) && own(value, keyField) && own(value, valueField))
      return Object.fromEntries(found.map((value) => [value[keyField], value[valueField]]))
    },
    chunk,
    renameKeys(list, ...names) {
      if (names.length === 0 || names.length % 2 !== 0)
        fail(
          'renameKeys(): expected an even amount of args: from1, to1 [, from2, to2, ...]. e.g. .renameKeys("name", "title")',
        )
      return list.map((value) => {
        if (!isObject(value)) return value
        const renamed = { ...value }
        for (const [from, to] of chunk(names, 2)) {
          if (!own(renamed, from)) continue
          renamed[to] = renamed[from]
          delete renamed[from]
        }
        return renamed
      })
    },
    merge(list, others) {
      if (others === undefined) {
        const objects = list.filter((value) => isObject(value) && !Array.isArray(value))
        return objects.reduce((made, value) => merged(made, value), {})
      }
      demandList(others, 'merge', OBJECTS)
      const made = {}
      for (let i = 0; i < Math.max(list.length, others.length); i++)
        if (typeof list[i] === 'object' && typeof others[i] === 'object')
          Object.assign(made, merged(list[i], others[i]))
      return made
    },
    mergeIntoObject(list, others) {
      demandList(others, 'mergeIntoObject', OBJECTS)
      const made = {}
      for (let i = 0; i < Math.max(list.length, others.length); i++) {
        if (isObject(list[i])) Object.assign(made, merged(list[i], isObject(others[i]) ? others[i] : {}))
        else if (isObject(others[i])) Object.assign(made, others[i])
      }
      return made
    },
    union: (list, others) => distinct([...list, ...demandList(others, 'union', NUMBERS)]),
    difference(list, others) {
      const has = finder(demandList(others, 'difference', NUMBERS))
      return distinct(list.filter((value) => !has(value)))
    },
    intersection(list, others) {
      const has = finder(demandList(others, 'intersection', NUMBERS))
      return distinct(list.filter(has))
    },
    toJsonString: (list) => JSON.stringify(list),
    toInt: nothing,
    toFloat: nothing,
    toBoolean: nothing,
    toDateTime: nothing,
  }

  const demandText = (text, message) => {
    if (typeof text !== 'string' || text === '') fail(message)
  }
  const encode = (value) =>
    encodeURIComponent(value)
      .replaceAll('%20', '+')
      .replace(/[!'()~]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)

  kinds.Object = {
    isEmpty: (object) => Object.keys(object).length === 0,
    isNotEmpty: (object) => Object.keys(object).length > 0,
    keys: (object) => Object.keys(object),
    values: (object) => Object.values(object),
    hasField: (object, name) => name in object,
    removeField(object, name) {
      const { [name]: _, ...rest } = object
      return name in object ? rest : object
    },
    removeFieldsContaining(object, text) {
      demandText(text, 'removeFieldsContaining(): expected non-empty string arg')
      const kept = Object.entries(object).filter(
        ([, value]) => typeof value !== 'string' || !value.includes(text),
      )
      return Object.fromEntries(kept)
    },
    keepFieldsContaining(object, text) {
      demandText(text, 'argument of keepFieldsContaining must be a non-empty string')
      const kept = Object.entries(object).filter(
        ([, value]) => typeof value === 'string' && value.includes(text),
      )
      return Object.fromEntries(kept)
    },
    compact: compactObject,
    urlEncode: (object) =>
      Object.entries(object)
        .map(([key, value]) => `${encode(key)}=${encode(String(value))}`)
        .join('&'),
    toJsonString: (object) => JSON.stringify(object),
    toInt: nothing,
    toFloat: nothing,
    toBoolean: nothing,
    toDateTime: nothing,
  }
  const toInt = (value) => (value ? 1 : 0)
  kinds.Boolean = { toBoolean: (value) => value, toInt, toFloat: toInt, toNumber: toInt, toDateTime: nothing }
}
