import { randomBytes, randomInt } from 'node:crypto'
import { v4 as uuid } from 'uuid'
import * as v from 'valibot'
import { createPause } from '../pace.ts'
import { readKey } from './config.ts'
import { invalidConfig } from './failure.ts'
import { readItems } from './items.ts'
import type { NodeContext, NodeRunner } from './node.ts'

const finite = v.pipe(v.number('must be a number'), v.finite('must be finite'))
const MAX_RANGE = 2 ** 48 - 1

/** RANDOM: outputs {value}: an integer from min to max, a float below max, a UUID, one of its items; or {items} shuffled. */
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
  const min = config.min === undefined ? 0 : await readKey(context, 'min', finite)
  const max = config.max === undefined ? 1 : await readKey(context, 'max', finite)
  if (max < min) throw invalidConfig('max', 'must not be below min')
  if (config.operation === 'float') {
    if (!Number.isFinite(max - min)) throw invalidConfig('max', 'is too far from min')
    return min + (max - min) * drawFraction()
  }
  if (config.operation !== 'integer') throw invalidConfig('operation', 'is unknown')
  if (!Number.isSafeInteger(min) || !Number.isSafeInteger(max))
    throw invalidConfig('max', 'and min must be whole numbers')
  if (max - min >= MAX_RANGE) throw invalidConfig('max', 'must be less than 2^48 above min')
  return max === min ? min : randomInt(min, max + 1)
}

/** As fine as a double can be: 53 random bits. */
function drawFraction(): number {
  return Number(randomBytes(8).readBigUInt64BE() >> 11n) / 2 ** 53
}

async function shuffle(items: unknown[]): Promise<unknown[]> {
  const shuffled = [...items]
  const pause = createPause()
  for (let at = shuffled.length - 1; at > 0; at--) {
    await pause()
    const other = randomInt(at + 1)
    const moved = shuffled[at]
    shuffled[at] = shuffled[other]
    shuffled[other] = moved
  }
  return shuffled
}
