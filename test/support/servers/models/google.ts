import {
  splitSpeech,
  startVendor,
  type VendorCall,
  type VendorRefusal,
  type VendorScript,
  type VendorSpeech,
} from './vendor.ts'

/**
 * Starts a loopback server with the API of Gemini, on /v1beta/models/<model>:streamGenerateContent?alt=sse. `url` is
 * the base URL for a credential of GOOGLE_AI.
 */
export async function startGoogle(script: VendorScript) {
  const server = await startVendor(script, writeContent, describeError)
  return { ...server, url: server.origin }
}

const KINDS: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  403: 'PERMISSION_DENIED',
  429: 'RESOURCE_EXHAUSTED',
}

function describeError({ status }: VendorRefusal) {
  return {
    error: { code: status, message: `The server says ${status}`, status: KINDS[status] ?? 'INTERNAL' },
  }
}

const USAGE = {
  promptTokenCount: 100,
  cachedContentTokenCount: 40,
  candidatesTokenCount: 15,
  thoughtsTokenCount: 5,
  totalTokenCount: 120,
}

/** Each event is a whole response with some of the parts; the last one has the reason. */
function writeContent(_: VendorCall, speech: VendorSpeech): string[] {
  const { tools = [], reasoning } = speech
  const usageMetadata = speech.usage === undefined ? USAGE : speech.usage
  const parts: object[] = [
    ...(reasoning ? [{ text: reasoning, thought: true }] : []),
    ...splitSpeech(speech.text).map((text) => ({ text })),
    ...tools.map(({ name, args }) => ({ functionCall: { name, args }, thoughtSignature: 'signed-thought' })),
  ]
  const responses = parts.map((part): object => ({
    candidates: [{ content: { role: 'model', parts: [part] }, index: 0 }],
  }))
  const finishReason = speech.finish ?? 'STOP'
  responses.push({
    candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, finishReason, index: 0 }],
    ...(usageMetadata ? { usageMetadata } : {}),
    modelVersion: 'gemini',
  })
  return responses.map((response) => `data: ${JSON.stringify(response)}\r\n\r\n`)
}
