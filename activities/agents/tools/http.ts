import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { ToolOf } from '../../../workflows/nodes/tools.ts'
import { sendRequest } from '../../nodes/http.ts'
import type { NodeContext } from '../../nodes/kit/node.ts'
import { repeatsTool } from '../repeats.ts'

const unzip = promisify(gunzip)

/** The most bytes that a tool's answer may have: the model is shown only the beginning of a long one anyway. */
const MAX_BYTES = 2 * 1024 * 1024

/** The statuses that may pass by themselves. Only a tool that may be called again waits for that. */
const PASSING = new Set([408, 425, 429])

/**
 * HTTP: sends the request, and answers with {status, body}, whatever the status; but a tool that may be called again
 * fails with what passes by itself (408, 425, 429, 5xx), so that it is. `begin` is called before it is sent.
 */
export async function callHttpTool(
  context: NodeContext,
  tool: ToolOf<'HTTP'>,
  begin: () => Promise<void>,
): Promise<unknown> {
  const repeats = repeatsTool(tool)
  const takes = (status: number) => !repeats || (status < 500 && !PASSING.has(status))
  const config = { ...tool, maxBytes: MAX_BYTES }
  const { output, written } = await sendRequest({ ...context, config }, { begin, takes })
  const answer = written ? JSON.parse((await unzip(written.zipped)).toString()) : output
  const { status, body } = answer as { status: number; body: unknown }
  return { status, body }
}
