// Written by `npm run n8n -- defaults`.

/** The model of n8n's nodes if a workflow names none, from a version of the node on: '' means that there is no default. */
export const DEFAULT_MODELS: Record<string, [since: number, model: string][]> = {
  lmChatAlibabaCloud: [[1, 'qwen-plus']],
  lmChatAnthropic: [
    [1, 'claude-3-5-sonnet-20240620'],
    [1.3, 'claude-sonnet-4-5-20250929'],
    [1.4, 'claude-sonnet-4-6'],
    [1.6, 'claude-sonnet-5'],
  ],
  lmChatCohere: [[1, 'command-a-03-2025']],
  lmChatDeepSeek: [[1, 'deepseek-chat']],
  lmChatGoogleGemini: [
    [1, 'models/gemini-2.5-flash'],
    [1.1, 'models/gemini-3-flash-preview'],
  ],
  lmChatGoogleVertex: [[1, 'gemini-2.5-flash']],
  lmChatGroq: [[1, 'llama3-8b-8192']],
  lmChatMinimax: [
    [1, 'MiniMax-M2.7'],
    [1.1, 'MiniMax-M3'],
  ],
  lmChatMistralCloud: [[1, 'mistral-small']],
  lmChatMoonshot: [
    [1, 'kimi-k2.5'],
    [1.1, 'kimi-k2.6'],
  ],
  lmChatNvidia: [[1, 'nvidia/llama-3.3-nemotron-super-49b-v1']],
  lmChatOllama: [[1, 'llama3.2']],
  lmChatOpenAi: [[1, 'gpt-5-mini']],
  lmChatOpenRouter: [[1, 'openai/gpt-4.1-mini']],
  lmChatVercelAiGateway: [[1, 'openai/gpt-4o']],
  lmChatXAiGrok: [[1, 'grok-2-vision-1212']],
  lmOllama: [[1, 'llama3.2']],
  lmOpenAi: [[1, 'gpt-3.5-turbo-instruct']],
  lmOpenHuggingFaceInference: [[1, 'mistralai/Mistral-Nemo-Base-2407']],
  'old openAi chat complete': [[1, 'gpt-3.5-turbo']],
  'old openAi image create': [[1, 'dall-e-2']],
  'old openAi text complete': [[1, 'gpt-3.5-turbo-instruct']],
  'old openAi text edit': [[1, 'text-davinci-edit-001']],
  'old openAi text moderate': [[1, 'text-moderation-latest']],
  'openAi audio generate': [[1, 'tts-1']],
  'openAi image edit': [
    [1, ''],
    [2, 'gpt-image-1'],
  ],
  'openAi image generate': [
    [1, 'dall-e-3'],
    [2.2, 'gpt-image-1-mini'],
  ],
}
