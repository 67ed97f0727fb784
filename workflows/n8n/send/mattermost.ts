import { getOwn } from '../../json.ts'
import { type Fields, objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import type { MappedNode } from '../parts.ts'
import { isTemplate, keepText, listObjects } from '../texts.ts'
import {
  keepFields,
  type MappedMessage,
  mapMessage,
  readAttachments,
  readOptionFields,
  refuseOperation,
} from './messenger.ts'

/** Mattermost's node. */
export function mapMattermost(node: SourceNode, tools: MapperTools): MappedNode {
  const { resource = 'message' } = node.parameters
  const usual = { message: 'post', channel: 'create' }
  const operation = node.parameters.operation ?? getOwn<string>(usual, String(resource))
  const read = getOwn(OPERATIONS, `${resource}.${operation}`)
  if (!read) return refuseOperation(String(resource), String(operation))
  return mapMessage(node, tools, 'mattermostApi', read(node))
}

const OPERATIONS: Record<string, (node: SourceNode) => MappedMessage> = {
  'message.post': (node) => {
    const { channelId, message, attachments } = node.parameters
    const { root_id: root, ...rest } = readOptionFields(node, 'otherOptions')
    return {
      config: {
        to: keepText(channelId),
        text: keepText(message),
        ...(root ? { thread: keepText(root) } : {}),
        options: { props: { attachments: readAttached(attachments) }, ...keepFields(rest) },
      },
    }
  },
  'message.postEphemeral': ({ parameters }) => {
    const { userId, channelId, message } = parameters
    const post = { channel_id: keepText(channelId), message: keepText(message) }
    const body = { user_id: keepText(userId), post }
    return { config: { operation: 'call', method: 'POST posts/ephemeral', body } }
  },
  'message.delete': ({ parameters }) => ({
    config: { operation: 'delete', message: keepText(parameters.postId) },
  }),
  'channel.addUser': ({ parameters }) => {
    const id = keepText(parameters.channelId)
    const path = 'POST channels/'
    const method = isTemplate(id) ? `=${path}${id.slice(1)}/members` : `${path}${id}/members`
    return { config: { operation: 'call', method, body: { user_id: keepText(parameters.userId) } } }
  },
  'channel.create': ({ parameters }) => {
    const { type = 'public', teamId, displayName, channel } = parameters
    const body: Fields = {
      team_id: keepText(teamId),
      display_name: keepText(displayName),
      name: keepText(channel),
      type: type === 'public' ? 'O' : 'P',
    }
    return { config: { operation: 'call', method: 'POST channels', body } }
  },
}

function readAttached(given: unknown): unknown {
  const hasButtons = listObjects(given).some(({ actions }) => Object.keys(objectOf(actions)).length > 0)
  if (hasButtons)
    throw new Error('its attachments have buttons: write them into the `options` of a CHAT_MESSAGE')
  return readAttachments(given)
}
