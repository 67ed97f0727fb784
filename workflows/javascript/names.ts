/** What JavaScript itself has in an expression, as n8n has it, with what is given besides. */
const LANGUAGE = `Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Date Error EvalError
  Float32Array Float64Array Infinity Int16Array Int32Array Int8Array Intl JSON Map Math NaN Number Object
  RangeError ReferenceError RegExp Set String Symbol SyntaxError TypeError URIError Uint16Array Uint32Array
  Uint8Array Uint8ClampedArray WeakMap WeakSet decodeURI decodeURIComponent encodeURI encodeURIComponent escape unescape
  isFinite isNaN parseFloat parseInt undefined arguments URL TextEncoder TextDecoder atob btoa crypto console`

/** What n8n gives besides, and Perdure's own variables. */
const GIVEN = `$ $json $data $binary $input $node $items $itemIndex $position $thisItem $thisItemIndex $runIndex
  $thisRunIndex $env $vars $execution $workflow $mode $now $today $jmespath $jmesPath $if
  $ifEmpty $min $max $not $average min max not average numberList zip toPathSegment DateTime Duration Interval
  $nodes $trigger $item $index $args $response $pageCount $request $try $fail`

const KNOWN = new Set(`${LANGUAGE} ${GIVEN}`.split(/\s+/))

/** The variables of a scope that each name reads; names that are not here read none. */
const ROOTS_OF: Record<string, string[]> = {
  $json: ['input', 'item', 'index'],
  $data: ['input', 'item', 'index'],
  $binary: ['input', 'item', 'index'],
  $input: ['input', 'item', 'index'],
  $thisItem: ['input', 'item', 'index'],
  $item: ['item'],
  $index: ['index'],
  $runIndex: ['runIndex'],
  $thisRunIndex: ['runIndex'],
  $itemIndex: ['index'],
  $position: ['index'],
  $thisItemIndex: ['index'],
  $env: ['vars'],
  $vars: ['vars'],
  $execution: ['execution'],
  $workflow: ['execution'],
  $mode: ['execution'],
  $now: ['execution'],
  $today: ['execution'],
  DateTime: ['execution'],
  $trigger: ['trigger'],
  $args: ['args'],
  $response: ['response'],
  $pageCount: ['pageCount'],
  $request: ['request'],
  // Paired items are found from the item.
  $: ['nodes', 'index'],
  $node: ['nodes', 'index'],
  $items: ['nodes'],
  $nodes: ['nodes'],
}

/** The names that n8n has and Perdure lacks, or lacks there, with the advice for each. */
const MISSING: Record<string, string> = {
  $secrets: 'secrets are not for expressions: a node reads them where its settings take a secret',
  $parameter: '$parameter is not available: write the value itself',
  $rawParameter: '$rawParameter is not available: write the value itself',
  $self: '$self is not available',
  $tool: '$tool is not available: a tool knows its call by $args',
  $agentInfo: '$agentInfo is not available',
  $fromAI: "$fromAI is not available: name the argument in the tool's parameters, and write $args.<name>",
  $fromAi: "$fromAi is not available: name the argument in the tool's parameters, and write $args.<name>",
  $fromai: "$fromai is not available: name the argument in the tool's parameters, and write $args.<name>",
  $evaluateExpression: '$evaluateExpression is not available: write the expression itself',
  $getPairedItem: "$getPairedItem is not available: write $('name of the node').item",
  $webhookId: '$webhookId is not available',
  $nodeId: '$nodeId is not available: write the id of the node itself',
  $prevNode: "$prevNode is not available: write $('name of the node'), or the name itself",
  $nodeVersion: '$nodeVersion is not available: nodes have no versions here',
}

/** The names that expressions cannot have; in n8n each of these is an empty object or nothing. */
const REFUSED = new Set(
  `process require module fetch XMLHttpRequest Buffer window document globalThis global self setTimeout
  setInterval setImmediate clearImmediate queueMicrotask Promise Proxy Reflect Function eval WebAssembly alert
  prompt confirm SharedArrayBuffer Atomics`.split(/\s+/),
)

/** The variables of the scope that a name in an expression reads. */
export function rootsOf(name: string): string[] {
  return Object.hasOwn(ROOTS_OF, name) ? ROOTS_OF[name]! : []
}

/** Why a name that nothing in the expression declares cannot be read; undefined if it can. */
export function explainName(name: string): string | undefined {
  if (KNOWN.has(name)) return undefined
  if (Object.hasOwn(MISSING, name)) return MISSING[name]
  if (REFUSED.has(name)) return `${name} is not available in expressions`
  if (KNOWN.has(`$${name}`)) return `unknown variable ${name}: write $${name}`
  return `unknown variable ${name}`
}

/** n8n's names of methods that it gives to values, by the kinds of values that have them. */
const METHODS = {
  text: `base64Decode base64Encode extractDomain extractEmail extractUrl extractUrlPath hash isDomain isEmail
    isNumeric isUrl length parseJson quote removeMarkdown removeTags replaceSpecialChars toDate toDecimalNumber
    toNumber toSentenceCase toSnakeCase toTitleCase toWholeNumber urlDecode`,
  number: 'abs ceil floor isEven isInteger isOdd round',
  date: 'beginningOf diffTo diffToNow endOfMonth extract isBetween isDst isInLast isWeekend minus plus',
  list: `append average chunk difference first intersection last max merge mergeIntoObject min pluck randomItem
    removeDuplicates renameKeys reverse smartJoin sum union unique`,
  object: 'hasField keepFieldsContaining keys removeField removeFieldsContaining values',
  several: 'compact format isEmpty isNotEmpty toBoolean toDateTime toFloat toInt toJsonString urlEncode',
}

/** The names of the methods that n8n gives to values. */
export const VALUE_METHODS = new Set(Object.values(METHODS).join(' ').split(/\s+/))

/** Those that work on dates, for which Luxon is needed. */
export const DATE_METHODS = new Set(`${METHODS.date} format toDateTime toDate`.split(/\s+/))
