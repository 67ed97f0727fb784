import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow'
import type { BenchActivities } from './floor.ts'

const { step } = proxyLocalActivities<BenchActivities>({ startToCloseTimeout: '1 minute' })
const { call } = proxyActivities<BenchActivities>({ startToCloseTimeout: '1 minute' })

/** The floor: the smallest possible durable run. */
export async function runFloor(input: { amount: number }): Promise<{ amount: number }> {
  return step(input)
}

/** The handwritten twin of a fan-out: all calls at once. */
export async function runFan(input: { url: string }): Promise<unknown[]> {
  return Promise.all(Array.from({ length: 100 }, () => call(input)))
}

/** The handwritten twin of five HTTP_REQUEST nodes. */
export async function runCalls(input: { url: string }): Promise<unknown> {
  let response: unknown
  for (let i = 0; i < 5; i++) response = await call(input)
  return response
}
