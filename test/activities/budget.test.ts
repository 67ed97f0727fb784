import { expect, test } from 'vitest'
import { createBudget, type Share } from '../../activities/budget.ts'

const never = new AbortController().signal

/** Asks for shares and notes in `order` who got one. */
function createOrder(budget: ReturnType<typeof createBudget>) {
  const order: string[] = []
  const shares: Share[] = []
  const ask = (team: string, bytes: number, signal = never) =>
    budget.take(team, bytes, signal).then((share) => {
      order.push(team)
      shares.push(share)
      return share
    })
  return { order, shares, ask }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

test('a team holds at most half, whether others wait or not, and holds up nobody while it waits', async () => {
  const budget = createBudget(100)
  const { order, shares, ask } = createOrder(budget)
  for (let n = 0; n < 20; n++) void ask('a', 10)
  await settled()
  expect(budget.read()).toEqual({ most: 100, held: 50, peak: 50, waiting: 15 })
  void ask('b', 50)
  await settled()
  expect(order).toEqual(['a', 'a', 'a', 'a', 'a', 'b'])
  shares.pop()?.release()
  while (shares.length > 0) {
    shares.pop()?.release()
    await settled()
  }
  expect(budget.read()).toEqual({ most: 100, held: 0, peak: 100, waiting: 0 })
  expect(order).toHaveLength(21)
})

test('teams are served in turn, and a large share is not passed over by small ones', async () => {
  const budget = createBudget(100)
  const { order, shares, ask } = createOrder(budget)
  for (const team of ['a', 'b']) await ask(team, 45)
  for (const team of ['c', 'c', 'd', 'd', 'e']) void ask(team, team === 'c' ? 20 : 10)
  await settled()
  expect(order).toEqual(['a', 'b'])
  shares[0]!.shrink(35)
  await settled()
  expect(order.slice(2)).toEqual(['c'])
  shares[1]!.release()
  await settled()
  expect(order.slice(2)).toEqual(['c', 'd', 'e', 'c'])
  expect(budget.read()).toEqual({ most: 100, held: 35 + 20 + 10 + 10 + 20, peak: 100, waiting: 1 })
})

test('a wait that is given up leaves the line, and what stood behind it is served', async () => {
  const budget = createBudget(100)
  const { order, ask } = createOrder(budget)
  for (const team of ['a', 'b']) await ask(team, 40)
  const gone = new AbortController()
  const large = ask('c', 50, gone.signal)
  void ask('d', 20)
  await settled()
  expect(order).toEqual(['a', 'b'])
  gone.abort(new Error('enough'))
  await expect(large).rejects.toThrow('enough')
  expect(order).toEqual(['a', 'b', 'd'])
  expect(budget.read()).toMatchObject({ held: 100, waiting: 0 })
  await expect(budget.take('e', 10, gone.signal)).rejects.toThrow('enough')
  await expect(budget.take('e', 51, never)).rejects.toThrow('51 bytes are more than half')
})

test('a share grows only by what its team may have and nobody has to wait for', async () => {
  const budget = createBudget(100)
  const share = await budget.take('a', 30, never)
  expect(share.grow(20)).toBe(true)
  expect(share.grow(1)).toBe(false)
  const [other, third] = [await budget.take('b', 30, never), await budget.take('c', 19, never)]
  expect([other.grow(2), other.grow(1), third.grow(1)]).toEqual([false, true, false])
  expect(budget.read().held).toBe(100)
  share.release()
  expect(share.grow(50)).toBe(true)
  for (const one of [share, other, third]) one.release()
  expect(budget.read()).toMatchObject({ held: 0, peak: 100 })
})

test('a share that shrinks does not grow by that, and is given back once', async () => {
  const budget = createBudget(100)
  const share = await budget.take('a', 40, never)
  share.shrink(30)
  share.shrink(35)
  expect(budget.read().held).toBe(30)
  share.release()
  share.release()
  expect(budget.read()).toEqual({ most: 100, held: 0, peak: 40, waiting: 0 })
})
