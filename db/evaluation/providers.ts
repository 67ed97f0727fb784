import type { CredentialType } from '../credentials/types.ts'

/** The vendors of judges, as the API names them. */
export const EVAL_PROVIDERS = ['openai', 'anthropic', 'azure_openai', 'google', 'custom'] as const
export type EvalProvider = (typeof EVAL_PROVIDERS)[number]

/** The type of the credential that each is called with. */
export const PROVIDER_CREDENTIALS: Record<EvalProvider, CredentialType> = {
  openai: 'OPENAI',
  anthropic: 'ANTHROPIC',
  azure_openai: 'AZURE_OPENAI',
  google: 'GOOGLE_AI',
  custom: 'OPENAI_COMPATIBLE',
}
