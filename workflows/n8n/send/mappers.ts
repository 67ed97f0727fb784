import type { NodeMapper } from '../mapper.ts'
import { mapDiscord } from './discord.ts'
import { mapSlack } from './slack.ts'
import { mapTelegram } from './telegram.ts'

/** Nodes that send messages to people. */
export const MESSAGE_MAPPERS: Record<string, NodeMapper> = {
  telegram: mapTelegram,
  slack: mapSlack,
  discord: mapDiscord,
}
