import { randomBytes, randomInt } from 'node:crypto'
import { v4 as uuid } from 'uuid'
import * as v from 'valibot'
import { createPacer } from '../expressions/pace.ts'
import { renderKey } from './kit/config.ts'
import { invalidConfig } from './kit/failure.ts'
import { readItems } from './kit/items.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'

const finite = v.pipe(v.number('must be a number'), v.finite('must be finite'))
const MAX_RANGE = 2 ** 48 - 1

/**
 * RANDOM: outputs {value}: an integer from min to max (inclusive), a float from min to below max, a UUID, or
 * one of the items (null if there are none). The operation `shuffle` outputs {items}.
 */
export const runRandom: NodeRunner = async (context) => {
  const { operation } = context.config
  if (operation === 'uuid') return { output: { value: uuid() } }
  if (operation === 'pick') {
    const items = await readItems(context)
    return { output: { value: items.length === 0 ? null : items[randomInt(items.length)] } }
  }
  if (operation === 'shuffle') return { output: { items: await shuffle(await readItems(context)) } }
  return { output: { value: await draw(context) } }
}

async function draw(context: NodeContext): Promise<number> {
  const { config } = context
  const min = config.min === undefined ? 0 : await renderKey(context, 'min', finite)
  const max = config.max === undefined ? 1 : await renderKey(context, 'max', finite)
  if (max < min) throw invalidConfig('max', 'must not be below min')
  if (config.operation === 'float') {
    if (!Number.isFinite(max - min)) throw invalidConfig('max', 'must be closer to min')
    return min + (max - min) * drawFraction()
  }
  if (config.operation !== 'integer') throw invalidConfig('operation', 'is unknown')
  if (!Number.isSafeInteger(min) || !Number.isSafeInteger(max))
    throw invalidConfig('max', 'and min must be whole numbers')
  if (max - min >= MAX_RANGE) throw invalidConfig('max', 'must be less than 2^48 above min')
  return max === min ? min : randomInt(min, max + 1)
}

/** A random number from 0 to below 1 with 53 random bits, the precision of a double. */
function drawFraction(): number {
  return Number(randomBytes(8).readBigUInt64BE() >> 11n) / 2 ** 53
}

async function shuffle(items: unknown[]): Promise<unknown[]> {
  const shuffled = [...items]
  const pace = createPacer()
  for (let at = shuffled.length - 1; at > 0; at--) {
    await pace()
    const other = randomInt(at + 1)
    const moved = shuffled[at]
    shuffled[at] = shuffled[other]
    shuffled[other] = moved
  }
  return shuffled
}
