import type { Bindings } from '../../expressions/bindings.ts'
import type { Evaluator } from '../../expressions/evaluator.ts'
import { createLimit } from '../../fairness/atonce.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import type { ItemRow, RowsHow } from './rows.ts'

/** How many conversions, filters and the like of a node's items are under way at once. */
const AT_ONCE = 8

type Call = { row: ItemRow; settle: (value: unknown) => void; fail: (error: unknown) => void }
type Group = { how: RowsHow; value: unknown; calls: Call[] }

/**
 * An evaluator for runners that work on many items at the same time. What they ask for is collected until all of
 * them wait: then the same question of all items is one job.
 */
export type Batch = {
  evaluator: Evaluator
  /** Binds a row: evaluations with the bindings that it returns are collected. */
  bind(row: ItemRow): Bindings
  /** A runner begins, or it is done: then the others need not wait for it. */
  begin(): void
  done(): void
}

export function createBatch(evaluator: Evaluator, bindings: Bindings): Batch {
  const rows = new WeakMap<Bindings, ItemRow>()
  let groups = new Map<string, Group>()
  let active = 0
  let waiting = 0
  const keyOf = createKeys()
  const queue = createLimit(AT_ONCE)

  function flush(): void {
    if (waiting === 0 || waiting < active) return
    const asked = [...groups.values()]
    groups = new Map()
    waiting = 0
    for (const { how, value, calls } of asked) {
      const own = calls.map(({ row }) => row)
      evaluator.rows(how, value, own, bindings).then(
        (values) => {
          for (const [at, { settle, fail }] of calls.entries()) {
            const found = values[at]
            if (found instanceof NodeFailure) fail(found)
            else settle(found)
          }
        },
        (error) => {
          for (const { fail } of calls) fail(error)
        },
      )
    }
  }

  function ask(how: RowsHow, value: unknown, row: ItemRow): Promise<unknown> {
    return new Promise((settle, fail) => {
      const key = `${how} ${keyOf(value)}`
      const group = groups.get(key) ?? { how, value, calls: [] }
      groups.set(key, group)
      group.calls.push({ row, settle, fail })
      waiting++
      flush()
    })
  }

  const whole: Evaluator = {
    ...evaluator,
    async render(value, own) {
      const row = rows.get(own)
      return row ? ask('render', value, row) : queue(() => evaluator.render(value, own))
    },
    async test(condition, own) {
      const row = rows.get(own)
      return row
        ? (ask('test', condition, row) as Promise<boolean>)
        : queue(() => evaluator.test(condition, own))
    },
    async evaluate(expression, own) {
      const row = rows.get(own)
      return row ? ask('evaluate', expression, row) : queue(() => evaluator.evaluate(expression, own))
    },
    holding: (items, condition, own) => queue(() => evaluator.holding(items, condition, own)),
    map: (items, expression, own) => queue(() => evaluator.map(items, expression, own)),
    convert: (conversion, own) => queue(() => evaluator.convert(conversion, own)),
    workOnFile: (work, what, own) => queue(() => evaluator.workOnFile(work, what, own)),
    for: () => whole,
  }

  return {
    evaluator: whole,
    bind(row) {
      const own = { ...bindings, ...row }
      rows.set(own, row)
      return own
    },
    begin() {
      active++
    },
    done() {
      active--
      flush()
    },
  }
}

/** A key that is the same for equal values of a config. Most are the very same value. */
function createKeys(): (value: unknown) => string {
  const known = new WeakMap<object, string>()
  return (value) => {
    if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined'
    let key = known.get(value)
    if (key === undefined) {
      key = JSON.stringify(value)
      known.set(value, key)
    }
    return key
  }
}
