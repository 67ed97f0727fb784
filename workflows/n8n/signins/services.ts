import { getOwn } from '../../json.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { needCredential } from './asking.ts'
import type { NeededCredential } from './needed.ts'
import { ofVendor, type SignInWay } from './ways.ts'

/** A vendor of models that speaks the protocol of OpenAI. */
const compatible = (baseUrl?: string): SignInWay =>
  ofVendor(
    'OPENAI_COMPATIBLE',
    `${baseUrl ? '' : "baseUrl: the vendor's address; "}apiKey: the API Key`,
    [],
    {
      ...(baseUrl ? { data: { baseUrl } } : {}),
    },
  )

const openAi = ofVendor('OPENAI', 'apiKey: the API Key; organization: the Organization ID', [])
const ollama = ofVendor('OPENAI_COMPATIBLE', 'baseUrl: the address of the server, with /v1 at its end', [])

/** Nodes of n8n that ask a model: their type of credential, and the one of ours to make for it. */
const MODELS: Record<string, [type: string, signIn: SignInWay]> = {
  openAi: ['openAiApi', openAi],
  lmChatOpenAi: ['openAiApi', openAi],
  lmOpenAi: ['openAiApi', openAi],
  lmChatAnthropic: ['anthropicApi', ofVendor('ANTHROPIC', 'apiKey: the API Key', [])],
  lmChatGoogleGemini: ['googlePalmApi', ofVendor('GOOGLE_AI', 'apiKey: the API Key', [])],
  lmChatAzureOpenAi: [
    'azureOpenAiApi',
    ofVendor('AZURE_OPENAI', 'apiKey: the API Key; endpoint: the resource', []),
  ],
  lmChatOllama: ['ollamaApi', ollama],
  lmOllama: ['ollamaApi', ollama],
  lmChatMistralCloud: ['mistralCloudApi', compatible('https://api.mistral.ai/v1')],
  lmChatGroq: ['groqApi', compatible('https://api.groq.com/openai/v1')],
  lmChatDeepSeek: ['deepSeekApi', compatible('https://api.deepseek.com')],
  lmChatOpenRouter: ['openRouterApi', compatible('https://openrouter.ai/api/v1')],
  lmChatXAiGrok: ['xAiApi', compatible('https://api.x.ai/v1')],
  lmChatVercelAiGateway: ['vercelAiGatewayApi', compatible('https://ai-gateway.vercel.sh/v1')],
  lmChatNvidia: ['nvidiaApi', compatible('https://integrate.api.nvidia.com/v1')],
  lmChatMoonshot: ['moonshotApi', compatible('https://api.moonshot.ai/v1')],
  lmChatLemonade: ['lemonadeApi', compatible()],
}

const LOGIN = 'host, port, database, username and password: as in n8n'
type Service = [type: string, signIn: SignInWay]
const POSTGRES: Service = ['postgres', ofVendor('DATABASE', LOGIN, [], { data: { dialect: 'postgresql' } })]
const MYSQL: Service = ['mySql', ofVendor('DATABASE', LOGIN, [], { data: { dialect: 'mysql' } })]
const DATABASES: Record<string, [type: string, signIn: SignInWay]> = {
  postgres: POSTGRES,
  mySql: MYSQL,
  postgresTool: POSTGRES,
  mySqlTool: MYSQL,
}

/** Whether it is the node of a model for whose vendor we have a credential. */
export function isModelNode(nodeType: string): boolean {
  return Object.hasOwn(MODELS, nodeType)
}

/** The credential that the node of a model or of a database needs. Any of ours that is for such nodes will do. */
export function needService(node: SourceNode, tools: MapperTools): NeededCredential {
  const database = getOwn(DATABASES, node.type)
  const [type, signIn] = database ?? getOwn(MODELS, node.type) ?? ['', { enter: 'what the model asks for' }]
  const need = needCredential(node, tools, { ...signIn, type, uses: [database ? 'DATABASE' : 'LLM'] })
  delete need.types
  return need
}
