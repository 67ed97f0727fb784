import type { Expression } from 'acorn'
import { getOwn } from '../../json.ts'
import { accessField, type JsonataCode, stringCode, toPlainValue, unknownCode } from './code.ts'
import { readDateField, readDateStart, startsWithDate } from './dates.ts'
import { callFunction } from './functions.ts'
import { callMethod, readLength, testRegex } from './methods.ts'
import { type ChainStep, failTranslation, type Translator } from './translator.ts'

/** What a chain begins with, and how many of its steps this uses up. */
type ChainStart = { code: JsonataCode; used: number }

/** Reads `root.a[0].b(c)`: first the root, then one step after the other. */
export function readChain(node: Expression, translator: Translator): JsonataCode {
  const { root, steps } = splitChain(node)
  let { code, used } = startsWithDate(root, steps)
    ? readDateStart(root, steps, translator)
    : readRoot(root, steps, translator)
  for (let i = used; i < steps.length; i++) {
    const step = steps[i]!
    if (!('key' in step)) return failTranslation('calls something that is not a method')
    const next = steps[i + 1]
    if (next && 'args' in next) {
      if (typeof step.key !== 'string') return failTranslation('calls a method by a computed name')
      code = callMethod(code, step.key, next.args, translator)
      i++
    } else code = readMember(code, step.key, translator)
  }
  return code
}

function splitChain(node: Expression): { root: Expression; steps: ChainStep[] } {
  const steps: ChainStep[] = []
  let root = node
  for (;;) {
    if (root.type === 'MemberExpression') {
      steps.unshift({ key: readKey(root) })
      root = root.object as Expression
    } else if (root.type === 'CallExpression') {
      if (root.callee.type === 'Super') return failTranslation('uses super')
      steps.unshift({ args: root.arguments })
      root = root.callee
    } else if (root.type === 'ChainExpression' || root.type === 'ParenthesizedExpression')
      root = root.expression
    else return { root, steps }
  }
}

/** The key as a string where the source has it, otherwise the expression that computes it. */
function readKey({
  object,
  property,
  computed,
}: Expression & { type: 'MemberExpression' }): Expression | string {
  if (object.type === 'Super' || property.type === 'PrivateIdentifier') return failTranslation('uses super')
  if (!computed && property.type === 'Identifier') return property.name
  if (computed && property.type === 'Literal' && typeof property.value === 'string') return property.value
  return property
}

function readRoot(root: Expression, steps: ChainStep[], translator: Translator): ChainStart {
  if (root.type !== 'Identifier') {
    if (root.type === 'NewExpression') return failTranslation('creates an object with new')
    return readRegexTest(root, steps, translator) ?? { code: translator.read(root), used: 0 }
  }
  const parameter = translator.scope.get(root.name)
  if (parameter) return { code: parameter, used: 0 }
  return readGlobal(root.name, steps, translator)
}

/** `/a/.test(value)` */
function readRegexTest(
  root: Expression,
  [method, call]: ChainStep[],
  translator: Translator,
): ChainStart | undefined {
  if (root.type !== 'Literal' || !root.regex || !method || !('key' in method) || method.key !== 'test')
    return undefined
  const [value] = call && 'args' in call ? call.args : []
  return value && { code: testRegex(root.regex, toPlainValue(translator.read(value))), used: 2 }
}

/** n8n's variables and JavaScript's global functions. */
function readGlobal(root: string, steps: ChainStep[], translator: Translator): ChainStart {
  const { references } = translator
  const keys = steps.map((step) => ('key' in step && typeof step.key === 'string' ? step.key : undefined))
  switch (root) {
    case '$json':
    case '$data':
      return { code: references.current(), used: 0 }
    case '$input':
      return readItem(keys, steps, 0, (which) => {
        if (which === 'all') return failTranslation('reads all items of its input at once')
        return references.current()
      })
    case '$': {
      const name = readNodeName(steps[0])
      if (keys[1] === 'isExecuted') return { code: references.wasExecuted(name), used: 2 }
      return readItem(keys, steps, 1, (which) => references.other(name, which))
    }
    case '$node': {
      const name = keys[0] ?? failTranslation('refers to a node by a computed name')
      if (keys[1] !== 'json') return failTranslation(`reads ${keys[1] ?? 'something'} of a node`)
      return { code: references.other(name, 'item'), used: 2 }
    }
    case '$itemIndex':
      return { code: references.index(), used: 0 }
    case '$execution':
      return readKnownField(root, keys, { id: '$execution.id' })
    case '$workflow':
      return readKnownField(root, keys, { id: '$execution.workflowId', name: '$execution.workflowName' })
    case '$vars':
      return { code: { text: '$vars', hint: 'object' }, used: 0 }
    case 'undefined':
      return { code: { text: 'null', hint: 'null' }, used: 0 }
  }
  const called = callFunction(root, keys, steps, translator)
  if (called) return called
  const name = keys[0] === undefined ? root : `${root}.${keys[0]}`
  return failTranslation(`reads ${name}, which Perdure does not have`)
}

function readNodeName(step: ChainStep | undefined): string {
  const [name] = step && 'args' in step ? step.args : []
  if (name?.type !== 'Literal' || typeof name.value !== 'string')
    return failTranslation('refers to a node by a computed name')
  return name.value
}

/** `.item.json`, `.first().json`, `.last().json` and `.all()`, from the step `from` on. */
function readItem(
  keys: (string | undefined)[],
  steps: ChainStep[],
  from: number,
  find: (which: 'item' | 'first' | 'last' | 'all') => JsonataCode,
): ChainStart {
  const which = keys[from]
  const isCalled = steps[from + 1] !== undefined && 'args' in steps[from + 1]!
  if (which === 'all' && isCalled) return { code: find('all'), used: from + 2 }
  if (which !== 'item' && !((which === 'first' || which === 'last') && isCalled)) {
    return failTranslation(`reads ${which ?? 'something'} of a node`)
  }
  const next = from + (isCalled ? 2 : 1)
  if (keys[next] !== 'json')
    return failTranslation(`reads ${keys[next] ?? 'something other than json'} of an item`)
  return { code: find(which), used: next + 1 }
}

function readKnownField(
  root: string,
  [key]: (string | undefined)[],
  known: Record<string, string>,
): ChainStart {
  const text = key === undefined ? undefined : getOwn(known, key)
  if (!text) return failTranslation(`reads ${key ?? 'something'} of ${root}, which Perdure does not have`)
  return { code: stringCode(text), used: 1 }
}

function readMember(code: JsonataCode, key: Expression | string, translator: Translator): JsonataCode {
  if (code.hint === 'date') return readDateField(code, key, translator)
  if (typeof key === 'string') {
    // readLength writes the value several times. If it were not shared, every length in a chain would
    // multiply it.
    return key === 'length'
      ? translator.share(toPlainValue(code), readLength)
      : accessField(toPlainValue(code), key)
  }
  if (key.type === 'Literal' && typeof key.value === 'number') {
    if (code.hint === 'string') return stringCode(`$substring(${code.text}, ${key.value}, 1)`)
    const base = /^[$\w.`\]]+$/.test(code.text) ? code.text : `(${code.text})`
    return unknownCode(`${base}[${key.value}]`)
  }
  const name = translator.read(key)
  if (name.hint === 'number') return unknownCode(`(${code.text})[${name.text}]`)
  if (name.hint === 'string') return unknownCode(`$lookup(${code.text}, ${name.text})`)
  return translator.share(code, (self) =>
    translator.share(name, ({ text }) =>
      unknownCode(`($type(${text}) = "number" ? ${self.text}[${text}] : $lookup(${self.text}, ${text}))`),
    ),
  )
}
