import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow'
import type { BenchActivities } from './floor.ts'

const { step } = proxyLocalActivities<BenchActivities>({ startToCloseTimeout: '1 minute' })
const { call } = proxyActivities<BenchActivities>({ startToCloseTimeout: '1 minute' })

/** The floor: the least that a durable run can be. */
export async function runFloor(input: { amount: number }): Promise<{ amount: number }> {
  return step(input)
}

/** The twin of a fan-out: all calls at once. */
export async function runFan(input: { url: string }): Promise<unknown[]> {
  return Promise.all(Array.from({ length: 100 }, () => call(input)))
}

/** The twin of five HTTP_REQUEST nodes, as one would write it by hand. */
export async function runCalls(input: { url: string }): Promise<unknown> {
  let answer: unknown
  for (let i = 0; i < 5; i++) answer = await call(input)
  return answer
}
