import type { Expression } from 'acorn'
import { type Code, enter, fail, type Step, settle, type Translation } from './javascript.ts'
import { callFunction, callMethod, readLength, testRegex } from './methods.ts'
import { findMoment, isMoment, readPart } from './times.ts'

/** Reads `root.a[0].b(c)`: what the root means, and what its steps make of it. */
export function readChain(node: Expression, at: Translation): Code {
  const { root, steps } = unchain(node)
  const moment = isMoment(root, steps) ? findMoment(root, steps, at) : undefined
  let { code, taken } = moment ?? readRoot(root, steps, at)
  for (let i = taken; i < steps.length; i++) {
    const step = steps[i]!
    if (!('key' in step)) return fail('calls what is no function')
    const next = steps[i + 1]
    if (next && 'args' in next) {
      if (typeof step.key !== 'string') return fail('calls a computed method')
      code = callMethod(code, step.key, next.args, at)
      i++
    } else code = readMember(code, step.key, at)
  }
  return code
}

function unchain(node: Expression): { root: Expression; steps: Step[] } {
  const steps: Step[] = []
  let root = node
  for (;;) {
    if (root.type === 'MemberExpression') {
      if (root.object.type === 'Super' || root.property.type === 'PrivateIdentifier')
        return fail('uses super')
      const literal =
        root.computed && root.property.type === 'Literal' && typeof root.property.value === 'string'
      const plain = !root.computed && root.property.type === 'Identifier'
      steps.unshift({
        key: plain
          ? (root.property as { name: string }).name
          : literal
            ? String((root.property as { value: unknown }).value)
            : root.property,
      })
      root = root.object
    } else if (root.type === 'CallExpression') {
      if (root.callee.type === 'Super') return fail('uses super')
      steps.unshift({ args: root.arguments })
      root = root.callee
    } else if (root.type === 'ChainExpression' || root.type === 'ParenthesizedExpression')
      root = root.expression
    else return { root, steps }
  }
}

type Rooted = { code: Code; taken: number }

function readRoot(root: Expression, steps: Step[], at: Translation): Rooted {
  if (root.type !== 'Identifier') {
    if (root.type === 'NewExpression') return fail('makes an object with new')
    const [method, call] = steps
    if (root.type === 'Literal' && root.regex && method && 'key' in method && method.key === 'test') {
      const [text] = call && 'args' in call ? call.args : []
      if (text) return { code: testRegex(root.regex, settle(at.read(text))), taken: 2 }
    }
    return { code: at.read(root), taken: 0 }
  }
  const bound = at.scope.get(root.name)
  if (bound) return { code: bound, taken: 0 }
  const keys = steps.map((step) => ('key' in step && typeof step.key === 'string' ? step.key : undefined))
  switch (root.name) {
    case '$json':
      return { code: at.names.current(), taken: 0 }
    case '$data':
      return { code: at.names.current(), taken: 0 }
    case '$input':
      return readItem(keys, steps, 0, (which) => {
        if (which === 'all') return fail('reads all items of its input at once')
        return at.names.current()
      })
    case '$': {
      const name = readName(steps[0])
      if (keys[1] === 'isExecuted') return { code: at.names.ran(name), taken: 2 }
      return readItem(keys, steps, 1, (which) => at.names.other(name, which))
    }
    case '$node': {
      const name = keys[0] ?? fail('names a node by a computed name')
      if (keys[1] !== 'json') return fail(`reads ${keys[1] ?? 'something'} of a node`)
      return { code: at.names.other(name, 'item'), taken: 2 }
    }
    case '$itemIndex':
      return { code: at.names.index(), taken: 0 }
    case '$execution':
      return readKnown(keys, { id: '$execution.id' })
    case '$workflow':
      return readKnown(keys, { id: '$execution.workflowId', name: '$execution.workflowName' })
    case '$vars':
      return { code: { text: '$vars', hint: 'object' }, taken: 0 }
    case 'undefined':
      return { code: { text: 'null', hint: 'null' }, taken: 0 }
  }
  return callFunction(root.name, keys, steps, at) ?? fail(`reads ${root.name}, which there is none of`)
}

function readName(step: Step | undefined): string {
  const [name] = step && 'args' in step ? step.args : []
  if (name?.type !== 'Literal' || typeof name.value !== 'string')
    return fail('names a node by a computed name')
  return name.value
}

/** `.item.json`, `.first().json`, `.last().json` and `.all()`, from a step on. */
function readItem(
  keys: (string | undefined)[],
  steps: Step[],
  from: number,
  find: (which: 'item' | 'first' | 'last' | 'all') => Code,
): Rooted {
  const which = keys[from]
  const called = steps[from + 1] !== undefined && 'args' in steps[from + 1]!
  if (which === 'all' && called) return { code: find('all'), taken: from + 2 }
  if (which !== 'item' && !((which === 'first' || which === 'last') && called)) {
    return fail(`reads ${which ?? 'something'} of a node`)
  }
  const then = from + (called ? 2 : 1)
  if (keys[then] !== 'json') return fail(`reads ${keys[then] ?? 'more than the JSON'} of an item`)
  return { code: find(which), taken: then + 1 }
}

function readKnown(keys: (string | undefined)[], known: Record<string, string>): Rooted {
  const text = keys[0] !== undefined && Object.hasOwn(known, keys[0]) ? known[keys[0]] : undefined
  if (!text) return fail(`reads ${keys[0] ?? 'what'}, which there is none of`)
  return { code: { text, hint: 'text' }, taken: 1 }
}

function readMember(code: Code, key: Expression | string, at: Translation): Code {
  if (code.hint === 'time') return readPart(code, key, at)
  if (typeof key === 'string') {
    // Shared before it is told more than once: a chain of them would grow with each.
    return key === 'length' ? at.share(settle(code), readLength) : enter(settle(code), key)
  }
  if (key.type === 'Literal' && typeof key.value === 'number') {
    if (code.hint === 'text') return { text: `$substring(${code.text}, ${key.value}, 1)`, hint: 'text' }
    const base = /^[$\w.`\]]+$/.test(code.text) ? code.text : `(${code.text})`
    return { text: `${base}[${key.value}]`, hint: 'unknown' }
  }
  const name = at.read(key)
  if (name.hint === 'number') return { text: `(${code.text})[${name.text}]`, hint: 'unknown' }
  if (name.hint === 'text') return { text: `$lookup(${code.text}, ${name.text})`, hint: 'unknown' }
  return at.share(code, (self) =>
    at.share(name, ({ text }) => ({
      text: `($type(${text}) = "number" ? ${self.text}[${text}] : $lookup(${self.text}, ${text}))`,
      hint: 'unknown',
    })),
  )
}
