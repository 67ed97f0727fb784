/** Whose model was called: its name among the team's usage, and the address by which the price list knows its prices. */
export type SpanVendor = { provider: string; baseUrl?: string }

/**
 * Vendors by how their names begin in the semantic conventions (`azure.ai.openai`), in older ones (`az.ai.openai`), in
 * OpenInference (`vertexai`) and in Vercel's AI SDK (`openai.responses`). Those that credentials exist for have the type
 * of the credential, so that all of a team's calls to them add up.
 */
const VENDORS: Record<string, SpanVendor> = {
  openai: { provider: 'OPENAI' },
  anthropic: { provider: 'ANTHROPIC' },
  az: { provider: 'AZURE_OPENAI' },
  azure: { provider: 'AZURE_OPENAI' },
  gcp: { provider: 'GOOGLE_AI' },
  gemini: { provider: 'GOOGLE_AI' },
  google: { provider: 'GOOGLE_AI' },
  vertex: { provider: 'GOOGLE_AI' },
  vertexai: { provider: 'GOOGLE_AI' },
  amazon: { provider: 'aws.bedrock', baseUrl: 'https://bedrock-runtime.us-east-1.amazonaws.com' },
  aws: { provider: 'aws.bedrock', baseUrl: 'https://bedrock-runtime.us-east-1.amazonaws.com' },
  cerebras: { provider: 'cerebras', baseUrl: 'https://api.cerebras.ai' },
  cohere: { provider: 'cohere', baseUrl: 'https://api.cohere.com' },
  deepseek: { provider: 'deepseek', baseUrl: 'https://api.deepseek.com' },
  fireworks: { provider: 'fireworks', baseUrl: 'https://api.fireworks.ai' },
  groq: { provider: 'groq', baseUrl: 'https://api.groq.com' },
  mistral: { provider: 'mistral_ai', baseUrl: 'https://api.mistral.ai' },
  mistralai: { provider: 'mistral_ai', baseUrl: 'https://api.mistral.ai' },
  moonshot: { provider: 'moonshot_ai', baseUrl: 'https://api.moonshot.ai' },
  openrouter: { provider: 'openrouter', baseUrl: 'https://openrouter.ai' },
  perplexity: { provider: 'perplexity', baseUrl: 'https://api.perplexity.ai' },
  together: { provider: 'together', baseUrl: 'https://api.together.xyz' },
  togetherai: { provider: 'together', baseUrl: 'https://api.together.xyz' },
  x: { provider: 'x_ai', baseUrl: 'https://api.x.ai' },
  xai: { provider: 'x_ai', baseUrl: 'https://api.x.ai' },
}

/** The vendor of a span's provider. One that is not known keeps its name, and has no prices but the team's own. */
export function findVendor(name: string | undefined): SpanVendor {
  if (name === undefined) return { provider: 'unknown' }
  const lower = name.toLowerCase()
  const [first = ''] = lower.split(/[._\-/ ]/)
  return (Object.hasOwn(VENDORS, first) ? VENDORS[first] : undefined) ?? { provider: lower }
}
