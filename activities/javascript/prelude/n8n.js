// What expressions see as n8n has it: $json, $input, $('Node') and the rest.
;(kit) => {
  const n8n = {}
  kit.n8n = n8n
  const own = (value, key) => Object.hasOwn(value, key)

  class ExpressionError extends Error {}
  n8n.ExpressionError = ExpressionError
  const refuse = (message) => {
    throw new ExpressionError(message)
  }

  // An expression that may change what it reads gets copies, so that the next one reads what was there.
  const shared = { wrapped: new Map(), binaries: new Map() }
  let kept = shared
  const read = (value) => {
    if (!kept.copies || typeof value !== 'object' || value === null) return value
    if (!kept.copies.has(value)) kept.copies.set(value, JSON.parse(JSON.stringify(value)))
    return kept.copies.get(value)
  }

  // The files of an item are no part of its JSON: workflows/itemfiles.ts has the rule.
  const FILES = '$binary'
  const isFile = (value) => typeof value?.file?.id === 'string' && typeof value.file.mimeType === 'string'
  const filesOf = (item) => {
    if (typeof item !== 'object' || item === null || !own(item, FILES)) return undefined
    const files = item[FILES]
    const all = typeof files === 'object' && files !== null ? Object.values(files) : []
    return all.length > 0 && all.every(isFile) ? files : undefined
  }
  const bares = new Map()
  /** The item without its files: the same object every time. */
  const bare = (item) => {
    if (filesOf(item) === undefined) return item
    if (!bares.has(item)) {
      const { [FILES]: _, ...rest } = item
      bares.set(item, rest)
    }
    return bares.get(item)
  }
  const binary = (item) => {
    const files = filesOf(item)
    if (files === undefined) return undefined
    if (!kept.binaries.has(item))
      kept.binaries.set(
        item,
        Object.fromEntries(Object.entries(files).map(([name, { file }]) => [name, kit.describeFile(file)])),
      )
    return kept.binaries.get(item)
  }
  const present = (item, at) => {
    const files = binary(item)
    return { json: read(bare(item)), ...(files ? { binary: files } : {}), pairedItem: { item: at } }
  }

  /** The items as n8n shows them. */
  const wrap = (items) => {
    let wrapped = kept.wrapped.get(items)
    if (!wrapped) {
      wrapped = items.map(present)
      kept.wrapped.set(items, wrapped)
    }
    return wrapped
  }

  const isItems = (value) =>
    typeof value === 'object' &&
    value !== null &&
    Array.isArray(value.items) &&
    Object.keys(value).every((key) => key === 'items' || key === 'from' || key === 'handles')
  const lists = new Map()
  /** The items of an output: its list, the elements of an array, or the one value itself. */
  const itemsOf = (value) => {
    if (value === null || value === undefined) return []
    if (Array.isArray(value)) return value
    if (isItems(value)) return value.items
    if (!lists.has(value)) lists.set(value, [value])
    return lists.get(value)
  }
  // With items of its own, a node is evaluated for each; else it is on the first of what comes in.
  const items = () => kit.roots.items ?? kit.items ?? itemsOf(kit.roots.input)
  const isEach = () => kit.items !== undefined || kit.roots.each === true
  // The items of a job may be some of the node's.
  const index = () => (isEach() ? (kit.roots.indexes?.[kit.index] ?? kit.index) : 0)
  const current = () => (isEach() ? kit.item : itemsOf(kit.roots.input)[0])
  const json = () => read(bare(current())) ?? {}
  const thisItem = () => {
    if (current() === undefined) return undefined
    return { ...present(current(), index()), json: json() }
  }

  // What JavaScript and luxon ask of any object, to find out what it is.
  const PROBES = new Set(['toJSON', 'then', 'isLuxonDateTime', 'isLuxonDuration', 'isLuxonInterval'])
  /** An object of which only `members` can be read. */
  const offer = (what, members, explain, whole) =>
    new Proxy(members, {
      get(target, key) {
        if (typeof key === 'symbol' || PROBES.has(key)) return undefined
        if (key in target) return target[key]
        const other = whole?.()
        if (typeof other === 'object' && other !== null && own(other, key)) return read(other[key])
        return refuse(explain?.(key) ?? `${what}.${key} is not available`)
      },
    })

  const noArguments = (name, given) => {
    if (given.length > 0)
      refuse(
        `$input.${name}() takes no arguments. To get items from a specific upstream node, use $('NodeName').${name}()`,
      )
  }
  const input = offer(
    '$input',
    {
      get item() {
        return thisItem()
      },
      first(...given) {
        noArguments('first', given)
        return wrap(items())[0]
      },
      last(...given) {
        noArguments('last', given)
        return wrap(items()).at(-1)
      },
      all: () => wrap(items()),
    },
    (key) => `$input.${key} is not available: write $json.${key}, or $input.item.json.${key}`,
    // Code sees the whole input besides.
    () => kit.roots.input,
  )

  const idOf = (name) => {
    const { names = {} } = kit.roots
    return own(names, name) ? names[name] : name
  }
  const outputOf = (name) => {
    const list = kit.roots.lists?.[idOf(name)]
    if (Array.isArray(list)) return list
    return refuse(list ?? `Node '${name}' hasn't been executed`)
  }
  // Nodes have one output here, and have run once.
  const onlyFirst = (given, value) => {
    if (given.some((which) => which !== undefined && which !== null && which !== 0 && which !== -1))
      refuse('other outputs and runs than the first are not available')
    return value
  }
  const pairedItem = (name, at) => {
    const pair = kit.roots.pairs?.[idOf(name)]?.[at]
    if (typeof pair === 'number') return wrap(outputOf(name))[pair]
    if (typeof pair === 'object') return present(pair.item, at)
    return refuse(pair ?? `there is no item ${at} here`)
  }
  const node = (name) => {
    if (typeof name !== 'string') refuse("write the name of a node: $('Fetch')")
    return offer(`$('${name}')`, {
      get isExecuted() {
        return (kit.roots.lists?.[idOf(name)] ?? null) !== null
      },
      get item() {
        return pairedItem(name, index())
      },
      get pairedItem() {
        return (at = index()) => pairedItem(name, at)
      },
      get itemMatching() {
        return (at) => pairedItem(name, at ?? refuse('Missing item index for .itemMatching()'))
      },
      get first() {
        outputOf(name)
        return (...given) => onlyFirst(given, wrap(outputOf(name))[0])
      },
      get last() {
        outputOf(name)
        return (...given) => onlyFirst(given, wrap(outputOf(name)).at(-1))
      },
      get all() {
        outputOf(name)
        return (...given) => onlyFirst(given, wrap(outputOf(name)))
      },
    })
  }
  const nodeAtIndex = (name, at = index()) => {
    const item = () => {
      const all = wrap(outputOf(name))
      if (all.length <= at)
        refuse(`"${name}" node has ${all.length} item(s) but you're trying to access item ${at}`)
      return all[at]
    }
    return offer(`$node["${name}"]`, {
      get json() {
        return item().json
      },
      get data() {
        return item().json
      },
      get binary() {
        return item().binary ?? {}
      },
      runIndex: 0,
    })
  }

  const nodesAt = (at) =>
    new Proxy({}, { get: (_, name) => (typeof name === 'symbol' ? undefined : nodeAtIndex(name, at)) })

  /** What an expression sees that is evaluated for another item of the same node. */
  const itemAt = (which, ...given) => {
    onlyFirst(given)
    const at = Number(which)
    const own = () => {
      const all = wrap(items())
      return all[at] ?? refuse(`the node has ${all.length} item(s) but you're trying to access item ${which}`)
    }
    return offer(`$item(${which})`, {
      get $json() {
        return own().json
      },
      get $data() {
        return own().json
      },
      get $binary() {
        return own().binary ?? {}
      },
      get $node() {
        return nodesAt(at)
      },
      $itemIndex: at,
    })
  }

  const execution = () => {
    const known = kit.roots.execution ?? {}
    const urls = Object.values(known.resumeUrls ?? {})
    return offer('$execution', {
      ...known,
      mode: known.trigger === 'MANUAL' ? 'test' : 'production',
      get resumeUrl() {
        if (urls.length === 1) return urls[0]
        return refuse(
          urls.length === 0
            ? '$execution.resumeUrl: no node behind this one waits for a call; $execution.resumeUrls has one for each that does'
            : '$execution.resumeUrl: several nodes wait for a call; take one of $execution.resumeUrls by its node',
        )
      },
    })
  }
  const workflow = () => {
    const { workflowId: id, workflowName: name } = kit.roots.execution ?? {}
    return offer('$workflow', { id, name, active: kit.roots.execution?.trigger !== 'MANUAL' })
  }

  const now = () => globalThis.DateTime.now()
  const variables = {
    $json: json,
    $data: json,
    $binary: () => binary(current()) ?? {},
    $input: () => input,
    $thisItem: () => thisItem(),
    $itemIndex: index,
    $position: index,
    $thisItemIndex: index,
    $runIndex: () => kit.roots.runIndex ?? 0,
    $thisRunIndex: () => kit.roots.runIndex ?? 0,
    $item: () => read(kit.item),
    $index: () => kit.roots.indexes?.[kit.index] ?? kit.index,
    $env: () => read(kit.roots.vars ?? {}),
    $vars: () => read(kit.roots.vars ?? {}),
    $trigger: () => read(kit.roots.trigger),
    $nodes: () => read(kit.roots.nodes ?? {}),
    $execution: execution,
    $workflow: workflow,
    $mode: () => execution().mode,
    $nodeId: () => refuse('$nodeId is not available: write the id of the node itself'),
    $prevNode: () => refuse("$prevNode is not available: write $('name of the node'), or the name itself"),
    $now: now,
    $today: () => now().set({ hour: 0, minute: 0, second: 0, millisecond: 0 }),
    $node: () => nodesAt(),
  }
  for (const [name, read] of Object.entries(variables)) kit.read(name, read)

  const ifEmpty = (...given) => {
    const [value, other] = given
    if (given.length !== 2) refuse('expected two arguments (value, defaultValue) for this function')
    if (value === undefined || value === null || value === '') return other
    return typeof value === 'object' && Object.keys(value).length === 0 ? other : value
  }
  const not = (value) => !value
  const average = (...numbers) => {
    if (numbers.some((number) => typeof number !== 'number'))
      refuse('average(): all array elements must be numbers')
    return numbers.length === 0 ? 0 : numbers.reduce((sum, number) => sum + number, 0) / numbers.length
  }
  const jmespath = (data, query) => {
    if (typeof data !== 'object' || typeof query !== 'string')
      refuse('expected two arguments (Object, string) for this function')
    return kit.libraries.jmespath.search(data, query)
  }
  const functions = {
    $: node,
    $items: (name, ...given) => onlyFirst(given, wrap(name === undefined ? items() : outputOf(name))),
    $if: (test, then, other = false) => (test ? then : other),
    $ifEmpty: ifEmpty,
    $min: Math.min,
    min: Math.min,
    $max: Math.max,
    max: Math.max,
    $not: not,
    not,
    $average: average,
    average,
    numberList(start, end) {
      const step = start < end ? 1 : -1
      return Array.from({ length: Math.abs(start - end) + 1 }, (_, i) => start + i * step)
    },
    zip(keys, values) {
      if (!Array.isArray(keys) || !Array.isArray(values)) refuse('keys and values must be arrays')
      if (keys.length !== values.length) refuse('keys and values not of equal length')
      return Object.fromEntries(keys.map((key, i) => [key, values[i]]))
    },
    toPathSegment(value) {
      if (value === undefined || value === null) refuse('Invalid identifier: a value is required')
      if (['', '.', '..'].includes(String(value))) refuse(`Invalid identifier: "${value}" is not allowed`)
      return encodeURIComponent(value)
    },
    $jmespath: jmespath,
    $jmesPath: jmespath,
    $fail: (message) => refuse(String(message)),
  }
  for (const [name, value] of Object.entries(functions)) kit.define(name, value)

  // n8n takes every error of JavaScript itself for nothing: `$json.a.b` where there is no `a`.
  const attempt = (evaluate) => {
    try {
      return evaluate()
    } catch (error) {
      const isLimit = typeof InternalError === 'function' && error instanceof InternalError
      if (isLimit || error instanceof ExpressionError) throw error
      return undefined
    }
  }
  const withCopies = (changes, evaluate) => {
    kept = changes ? { wrapped: new Map(), binaries: new Map(), copies: new Map() } : shared
    try {
      return evaluate()
    } finally {
      kept = shared
    }
  }
  const evaluation = {
    /** The value of an expression that is a template of its own. */
    $$value: (evaluate, changes) =>
      withCopies(changes, () => {
        const value = attempt(evaluate)
        // As JSON it would be nothing: readValue in evaluate.ts makes it a number again.
        if (value === Infinity || value === -Infinity) return { $$infinite: value > 0 }
        if (typeof value !== 'function') return value
        return refuse(
          value === globalThis.DateTime
            ? 'this is a DateTime, please access its methods'
            : 'this is a function, please add ()',
        )
      }),
    /** A text with expressions in it: nothing and NaN become '', all else what JavaScript makes of it. */
    $$text: (parts, changes) =>
      withCopies(changes, () =>
        attempt(() =>
          parts
            .map((part) => {
              if (typeof part === 'string') return part
              const value = attempt(part)
              return value || value === 0 || value === false ? value : ''
            })
            .join(''),
        ),
      ),
    /** The values of several sources for one item, each in a list that is empty for nothing; or what is wrong. */
    $$row(sources) {
      const values = []
      for (const [at, evaluate] of sources.entries()) {
        try {
          const value = evaluate()
          values.push(value === undefined ? [] : [value])
        } catch (error) {
          if (error instanceof ExpressionError) return { at, message: error.message }
          throw error
        }
      }
      return values
    },
    $$itemAt: itemAt,
    /** What `$try` is written as. */
    $$try: attempt,
    $$optional: (value, go) => (value === undefined || value === null ? undefined : go(value)),
    $$bind: (target, name) => {
      const method = target[name]
      return typeof method === 'function' ? method.bind(target) : method
    },
  }
  for (const [name, value] of Object.entries(evaluation)) kit.define(name, value)
}
