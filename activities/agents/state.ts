import type { ModelMessage, ToolCall } from '../models/model.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'

/** A tool that a server has offered in the first turn: it stays as it is for the whole run. */
export type RemoteTool = {
  /** The index of the server among the agent's tools. */
  server: number
  /** The name that the model knows, and the server's own. */
  name: string
  remoteName: string
  description: string
  parameters: Record<string, unknown>
}

/** A call that the last turn has asked for. One with a `fault` is no task: the model is told what is wrong with it. */
export type AskedCall = ToolCall & { fault?: string }

/** What an agent carries from one turn to the next, beside the conversation, which is its log. Plain JSON. */
export type AgentState = {
  /** The whole conversation, of agents that began when it was no log. */
  messages?: ModelMessage[]
  remote: RemoteTool[]
  /** The calls of the last turn, in the model's order. */
  asked: AskedCall[]
  /**
   * The tokens and US dollars that the turns up to now have used, with estimates for lost attempts; the cost is null
   * once it is unknown.
   */
  tokens: number
  cost: number | null
  /** Tokens of the conversation up to the last answer, as the vendor has reported them. */
  talk?: number | undefined
  /** The smallest limit of an answer, in tokens, that the vendor has refused as too large. */
  refusedMost?: number | undefined
  /** How many messages of the log were there before the first turn; undefined if the agent began before that was known. */
  opening?: number
  /** The last text of the model that was not empty; '' if texts are held. */
  lastText: string
  /** Its memory's key, and the number in the conversation of the prompt, which is remembered with the answer. */
  memory?: { key: string; prompt: number }
  /** There are no steps left for what the last turn has asked for. */
  isOver?: true
}

/** The most characters of a task's id, and of its tool's name: the run carries them along. */
export const MAX_TASK_NAME = 200

/** The most bytes of JSON that a conversation may have. */
const MAX_TALK_BYTES = 2_000_000

/** Throws a NodeFailure (OutputTooLarge) if the conversation has become too long to be gone on with. */
export function demandMessageRoom(messages: ModelMessage[]): void {
  const bytes = Buffer.byteLength(JSON.stringify(messages))
  if (bytes <= MAX_TALK_BYTES) return
  const message =
    `The conversation of the agent has ${bytes} bytes; it may have ${MAX_TALK_BYTES}. ` +
    'Let its tools answer with less, or split its work among several agents'
  throw new NodeFailure(message, { type: 'OutputTooLarge' })
}
