import type jsonata from 'jsonata'
import { syntaxOf } from '../../../workflows/expressions/expressions.ts'
import { type ReadPath, readSteps, watchTree } from '../../../workflows/expressions/watched.ts'
import { nameType } from '../../../workflows/problem.ts'

/** How many fields a message names, and the most characters of each name. */
const MAX_NAMED = 10
const MAX_NAME = 50

/** How many values are looked at for one path: in longer lists it counts as found. */
const MAX_LOOKED = 100_000

/**
 * Says in one sentence why a path does not exist in a value; undefined if it exists, as far as it is plain. A path
 * over a list exists if one of its elements has it, and in an empty list nothing is missed. `start` is the value of
 * the path's variable.
 */
export function findMiss({ root, steps }: ReadPath, start: unknown): string | undefined {
  if (start === undefined) return missVariable(root)
  let values: unknown[] = [start]
  let looked = 0
  for (const [at, step] of steps.entries()) {
    const owners = typeof step === 'number' ? values : flatten(values)
    looked += owners.length
    if (looked > MAX_LOOKED || owners.length === 0) return undefined
    const found = owners.flatMap((owner) => {
      const value = typeof step === 'number' ? pickElement(owner, step) : readOwn(owner, step)
      return value === undefined ? [] : [value]
    })
    if (found.length > 0) {
      values = found
      continue
    }
    const shown = `\`${showPath(root, steps.slice(0, at + 1))}\``
    if (typeof step === 'number') return `${shown}: no such element; ${countElements(owners[0])}`
    const [only] = steps
    if (root === 'nodes' && at === 0) return `${shown}: the node has no output, as it was not executed`
    if (root === 'vars' && step === only) return `${shown}: the team has no such variable`
    return `${shown}: no such field${owners.length > 1 ? ` in any of ${owners.length} items` : ''}; ${describeOwner(
      owners.find((owner) => typeof owner === 'object' && owner !== null) ?? owners[0],
      showPath(root, steps.slice(0, at)),
    )}`
  }
  return undefined
}

function missVariable(root: string | undefined): string | undefined {
  if (root === 'item' || root === 'index') return `\`$${root}\`: there is no item here`
  if (root === 'input' || root === 'trigger') return `\`$${root}\`: there is none here`
  return undefined
}

/** The elements of lists, and of lists in them, in the place of the lists. */
function flatten(values: unknown[]): unknown[] {
  if (!values.some(Array.isArray)) return values
  const flat: unknown[] = []
  const open = [...values].reverse()
  while (open.length > 0 && flat.length <= MAX_LOOKED) {
    const next = open.pop()
    if (!Array.isArray(next)) flat.push(next)
    else if (next.length > MAX_LOOKED) return new Array(MAX_LOOKED + 1)
    else for (let at = next.length - 1; at >= 0; at--) open.push(next[at])
  }
  return flat
}

function readOwn(owner: unknown, name: string): unknown {
  if (typeof owner !== 'object' || owner === null || !Object.hasOwn(owner, name)) return undefined
  return (owner as Record<string, unknown>)[name]
}

function pickElement(owner: unknown, at: number): unknown {
  return (Array.isArray(owner) ? owner : [owner]).at(at)
}

function countElements(owner: unknown): string {
  const count = Array.isArray(owner) ? owner.length : 1
  if (count === 0) return 'the list is empty'
  return count === 1 ? 'there is one' : `there are ${count}`
}

/** Describes the value that lacks a field. */
export function describeOwner(owner: unknown, shown: string): string {
  if (typeof owner !== 'object' || owner === null) return `\`${shown}\` is ${nameType(owner)}`
  const names = Object.keys(owner)
  if (names.length === 0) return 'there are none'
  const listed = names
    .slice(0, MAX_NAMED)
    .map((name) => `\`${name.length > MAX_NAME ? `${name.slice(0, MAX_NAME)}...` : name}\``)
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : ''
  return `there ${names.length === 1 ? 'is' : 'are'} ${listed.join(', ')}${more}`
}

/** A path as it is written in an expression. */
function showPath(root: string | undefined, steps: ReadPath['steps']): string {
  let text = root === undefined ? '' : `$${root}`
  for (const step of steps) {
    if (typeof step === 'number') text += `[${step}]`
    else {
      const name = /^[\p{L}_][\p{L}\p{N}_]*$/u.test(step) ? step : JSON.stringify(step)
      text += text === '' ? name : `.${name}`
    }
  }
  return text === '' ? '$' : text
}

type Watched = { type: string; value?: unknown; steps?: Watched[] }
type Scope = { lookup(name: string): unknown }

/** JSONata calls what is bound to this after each node of a tree that it has evaluated. */
const EXIT = Symbol.for('jsonata.__evaluate_exit') as unknown as string

/**
 * Makes an expression note its paths that lead nowhere, inside of any values: evaluating takes longer then. A path that
 * was read several times, as for each item of a list, counts if it never found anything.
 */
export function traceExpression(expression: jsonata.Expression): { misses(): string[] } {
  const { asking } = watchTree(syntaxOf(expression) as never)
  const missed = new Map<object, string>()
  const found = new Set<object>()
  const note = (node: Watched, input: unknown, scope: Scope, result: unknown) => {
    if (node.type !== 'path' && node.type !== 'variable') return
    if (asking.has(node) || found.has(node)) return
    if (result !== undefined && !(Array.isArray(result) && result.length === 0)) {
      found.add(node)
      missed.delete(node)
      return
    }
    if (missed.has(node)) return
    const path = readSteps((node.steps ?? [node]) as never)
    const { root } = path
    const start = root === undefined || root === '' ? input : scope.lookup(root)
    const miss = findMiss(path, start)
    if (miss !== undefined) missed.set(node, miss)
  }
  expression.assign(EXIT, note)
  return { misses: () => [...new Set(missed.values())] }
}
