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
 * Starts a loopback server with OpenAI's API, on /v1/chat/completions and /v1/responses (and Azure's addresses), as it
 * is documented: the script says what it answers. `url` is the base URL for a credential of OPENAI or
 * OPENAI_COMPATIBLE, `origin` the endpoint for AZURE_OPENAI.
 */
export async function startOpenAi(script: VendorScript) {
  const server = await startVendor(
    script,
    (call, speech) =>
      /\/responses(?:\?|$)/.test(call.path) ? writeResponse(call, speech) : writeChat(call, speech),
    describeError,
  )
  return { ...server, url: `${server.origin}/v1` }
}

const KINDS: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'invalid_request_error',
  404: 'invalid_request_error',
  429: 'rate_limit_error',
}

function describeError({ status }: VendorRefusal) {
  const type = KINDS[status] ?? 'server_error'
  return { error: { message: `The server says ${status}`, type, param: null, code: null } }
}

/** The chunks of a chat completion: the role, the reasoning, the text, the calls, the reason, the usage, [DONE]. */
function writeChat({ body }: VendorCall, speech: VendorSpeech): string[] {
  const { tools = [], usage, reasoning } = speech
  const finish = speech.finish ?? (tools.length > 0 ? 'tool_calls' : 'stop')
  const head = {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1_760_000_000,
    model: body.model ?? 'model',
    system_fingerprint: null,
  }
  const chunk = (delta: object, reason: string | null = null) => ({
    ...head,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }],
  })
  const chunks: object[] = [chunk({ role: 'assistant', content: '' })]
  if (reasoning) chunks.push(chunk({ reasoning_content: reasoning }))
  for (const content of splitSpeech(speech.text)) chunks.push(chunk({ content }))
  for (const [index, { id = `call_${index + 1}`, name, args }] of tools.entries()) {
    chunks.push(chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }))
    for (const piece of splitArguments(args))
      chunks.push(chunk({ tool_calls: [{ index, function: { arguments: piece } }] }))
  }
  chunks.push(chunk({}, finish))
  const counted = usage === undefined ? CHAT_USAGE : usage
  const asked = (body.stream_options as { include_usage?: boolean } | undefined)?.include_usage
  if (asked && counted) chunks.push({ ...head, choices: [], usage: counted })
  return [...chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`), 'data: [DONE]\n\n']
}

const CHAT_USAGE = {
  prompt_tokens: 100,
  completion_tokens: 20,
  total_tokens: 120,
  prompt_tokens_details: { cached_tokens: 40, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 5, audio_tokens: 0 },
}

const RESPONSE_USAGE = {
  input_tokens: 100,
  input_tokens_details: { cached_tokens: 40 },
  output_tokens: 20,
  output_tokens_details: { reasoning_tokens: 5 },
  total_tokens: 120,
}

/** The events of a response, each with its type and its number. */
function writeResponse({ body }: VendorCall, speech: VendorSpeech): string[] {
  const { tools = [], reasoning, usage, finish } = speech
  const events: Record<string, unknown>[] = []
  const output: object[] = []
  const response = (status: string, more: object = {}) => ({
    id: 'resp_1',
    object: 'response',
    created_at: 1_760_000_000,
    status,
    error: null,
    incomplete_details: null,
    model: body.model ?? 'model',
    output: [],
    store: body.store ?? true,
    usage: null,
    ...more,
  })
  events.push({ type: 'response.created', response: response('in_progress') })
  events.push({ type: 'response.in_progress', response: response('in_progress') })
  if (reasoning !== undefined) {
    const place = { output_index: output.length }
    const item = { id: 'rs_1', type: 'reasoning', summary: [] }
    const summary = { item_id: 'rs_1', ...place, summary_index: 0 }
    events.push({ type: 'response.output_item.added', ...place, item: { ...item, encrypted_content: '' } })
    events.push({
      type: 'response.reasoning_summary_part.added',
      ...summary,
      part: { type: 'summary_text', text: '' },
    })
    events.push({ type: 'response.reasoning_summary_text.delta', ...summary, delta: reasoning })
    events.push({ type: 'response.reasoning_summary_text.done', ...summary, text: reasoning })
    const done = {
      ...item,
      summary: [{ type: 'summary_text', text: reasoning }],
      encrypted_content: 'sealed-reasoning',
    }
    events.push({ type: 'response.output_item.done', ...place, item: done })
    output.push(done)
  }
  const pieces = splitSpeech(speech.text)
  if (pieces.length > 0) {
    const place = { output_index: output.length }
    const item = {
      id: 'msg_1',
      type: 'message',
      status: 'in_progress',
      role: 'assistant',
      content: [] as object[],
    }
    const within = { item_id: 'msg_1', ...place, content_index: 0 }
    const part = (text: string) => ({ type: 'output_text', text, annotations: [], logprobs: [] })
    events.push({ type: 'response.output_item.added', ...place, item })
    events.push({ type: 'response.content_part.added', ...within, part: part('') })
    for (const delta of pieces)
      events.push({ type: 'response.output_text.delta', ...within, delta, logprobs: [] })
    const text = pieces.join('')
    events.push({ type: 'response.output_text.done', ...within, text, logprobs: [] })
    events.push({ type: 'response.content_part.done', ...within, part: part(text) })
    const done = { ...item, status: 'completed', content: [part(text)] }
    events.push({ type: 'response.output_item.done', ...place, item: done })
    output.push(done)
  }
  for (const [n, { id = `call_${n + 1}`, name, args }] of tools.entries()) {
    const place = { output_index: output.length }
    const item = {
      id: `fc_${n + 1}`,
      type: 'function_call',
      status: 'in_progress',
      call_id: id,
      name,
      arguments: '',
    }
    const whole = splitArguments(args).join('')
    events.push({ type: 'response.output_item.added', ...place, item })
    for (const delta of splitArguments(args))
      events.push({ type: 'response.function_call_arguments.delta', item_id: item.id, ...place, delta })
    events.push({
      type: 'response.function_call_arguments.done',
      item_id: item.id,
      ...place,
      name,
      arguments: whole,
    })
    const done = { ...item, status: 'completed', arguments: whole }
    events.push({ type: 'response.output_item.done', ...place, item: done })
    output.push(done)
  }
  const counted = { output, usage: usage === undefined ? RESPONSE_USAGE : usage }
  events.push(
    finish && finish !== 'stop'
      ? {
          type: 'response.incomplete',
          response: response('incomplete', { ...counted, incomplete_details: { reason: finish } }),
        }
      : { type: 'response.completed', response: response('completed', counted) },
  )
  return events.map(
    (event, n) => `event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number: n })}\n\n`,
  )
}
