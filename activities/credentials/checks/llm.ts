import type { OpenedCredential } from '../../../db/credentials/open.ts'
import { askWith, findBase } from './ask.ts'
import type { CheckTools, CredentialCheck } from './check.ts'

/** The version of Azure's API that is asked for if the credential names none. */
export const AZURE_VERSION = '2024-10-21'

/** Lists the models that a vendor offers to the credential. */
function listModels(findUrl: (credential: OpenedCredential) => string): CredentialCheck {
  return async (credential, tools: CheckTools) => {
    const url = findUrl(credential)
    const answer = await askWith(credential, tools, { url })
    const models = answer?.data ?? answer?.models
    if (!Array.isArray(models)) throw new Error(`${new URL(url).host} did not respond with a list of models`)
    return `Signed in: ${models.length} ${models.length === 1 ? 'model' : 'models'}`
  }
}

export const checkOpenAi = listModels(
  (credential) => `${findBase(credential, 'https://api.openai.com/v1')}/models`,
)
export const checkAnthropic = listModels(
  (credential) => `${findBase(credential, 'https://api.anthropic.com')}/v1/models`,
)
export const checkGoogleAi = listModels(
  (credential) => `${findBase(credential, 'https://generativelanguage.googleapis.com')}/v1beta/models`,
)
export const checkAzureOpenAi = listModels((credential) => {
  const version = String(credential.data.apiVersion ?? AZURE_VERSION)
  return `${findBase(credential, '', 'endpoint')}/openai/models?api-version=${encodeURIComponent(version)}`
})

/** The type for trying things out. */
export const checkDemo: CredentialCheck = async () => 'It needs no key'
