import { sleep } from '@temporalio/workflow'
import type { RunInput } from '../../../workflows/run/messages.ts'
import { runGraph as run } from '../../../workflows/run/run.ts'

export { fire } from '../../../workflows/run/versioned.ts'

// The entry of a bundle as a later release could have it, which runs that began in this one would not replay on: it
// begins with another command.
export async function runGraph(input: RunInput): Promise<void> {
  await sleep(1)
  await run(input)
}
