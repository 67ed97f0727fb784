import {
  splitArguments,
  splitSpeech,
  startVendor,
  type VendorCall,
  type VendorRefusal,
  type VendorScript,
  type VendorSpeech,
} from './vendor.ts'

/**
 * Starts a loopback server with Anthropic's API, on /v1/messages, as it is documented: the script says what it
 * answers. `url` is the base URL for a credential of ANTHROPIC.
 */
export async function startAnthropic(script: VendorScript) {
  const server = await startVendor(script, writeMessages, describeError)
  return { ...server, url: server.origin }
}

const KINDS: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}

function describeError({ status }: VendorRefusal) {
  const type = KINDS[status] ?? 'api_error'
  return { type: 'error', error: { type, message: `The server says ${status}` }, request_id: 'req_1' }
}

const USAGE = {
  input_tokens: 60,
  cache_creation_input_tokens: 10,
  cache_read_input_tokens: 30,
  output_tokens: 20,
}

/** message_start, a ping, the blocks with their deltas, message_delta with the reason and the usage, message_stop. */
function writeMessages({ body }: VendorCall, speech: VendorSpeech): string[] {
  const { tools = [], reasoning } = speech
  const usage: Record<string, unknown> = { ...USAGE, ...speech.usage }
  const { output_tokens, ...input } = usage
  const events: Record<string, unknown>[] = []
  let index = 0
  const block = (start: object, deltas: object[]) => {
    events.push({ type: 'content_block_start', index, content_block: start })
    for (const delta of deltas) events.push({ type: 'content_block_delta', index, delta })
    events.push({ type: 'content_block_stop', index })
    index++
  }
  events.push({
    type: 'message_start',
    message: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: body.model ?? 'model',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...input, output_tokens: 1 },
    },
  })
  events.push({ type: 'ping' })
  if (reasoning !== undefined)
    block({ type: 'thinking', thinking: '', signature: '' }, [
      { type: 'thinking_delta', thinking: reasoning },
      { type: 'signature_delta', signature: 'signed-thinking' },
    ])
  const pieces = splitSpeech(speech.text)
  if (pieces.length > 0)
    block(
      { type: 'text', text: '' },
      pieces.map((text) => ({ type: 'text_delta', text })),
    )
  for (const [n, { id = `toolu_${n + 1}`, name, args }] of tools.entries())
    block(
      { type: 'tool_use', id, name, input: {} },
      ['', ...splitArguments(args)].map((partial_json) => ({ type: 'input_json_delta', partial_json })),
    )
  const reason = speech.finish ?? (tools.length > 0 ? 'tool_use' : 'end_turn')
  events.push({
    type: 'message_delta',
    delta: { stop_reason: reason, stop_sequence: null },
    usage: { output_tokens },
  })
  events.push({ type: 'message_stop' })
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
}
