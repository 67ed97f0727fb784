import { getOwn } from '../../json.ts'
import { objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import { isTemplate, keepText } from '../texts.ts'
import {
  keepFields,
  type MappedMessage,
  readAttachments,
  readKnownJson,
  readOptionFields,
  refuseOperation,
} from './messenger.ts'

/** What the first version of Slack's node does with messages and reactions. */
export function mapOldSlack(node: SourceNode, resource: string): MappedMessage {
  const usual = { message: 'post', reaction: 'add' }
  const operation = String(node.parameters.operation ?? getOwn<string>(usual, resource))
  const name = `${resource}.${operation}`
  switch (name) {
    case 'message.post':
    case 'message.postEphemeral':
      return postOld(node, operation === 'postEphemeral')
    case 'message.update':
      return updateOld(node)
    case 'message.delete': {
      const { channelId, timestamp } = node.parameters
      return { config: { operation: 'delete', to: keepText(channelId), message: keepText(timestamp) } }
    }
    case 'reaction.add':
    case 'reaction.remove': {
      const { channelId, timestamp, name } = node.parameters
      const config = { to: keepText(channelId), message: keepText(timestamp), reaction: keepText(name) }
      return {
        config: { operation: 'react', ...config, ...(operation === 'remove' ? { remove: true } : {}) },
      }
    }
  }
  return refuseOperation(resource, operation)
}

function postOld(node: SourceNode, isEphemeral: boolean): MappedMessage {
  const { parameters } = node
  const { authentication = 'accessToken', channel, text, user } = parameters
  const { sendAsUser, mrkdwn, thread_ts: thread, ...rest } = readOptionFields(node, 'otherOptions')
  const options = {
    ...readParts(node),
    ...keepFields({
      ...(authentication === 'accessToken' && sendAsUser ? { username: sendAsUser } : {}),
      ...rest,
    }),
  }
  if (isEphemeral) {
    const own = keepFields({ channel: channel ?? '', text: text ?? '', user: user ?? '' })
    return { config: { operation: 'call', method: 'chat.postEphemeral', body: { ...own, ...options } } }
  }
  if (isTemplate(mrkdwn)) throw new Error('an expression says whether it is Markdown')
  return {
    config: {
      to: keepText(channel),
      text: keepText(text),
      ...(mrkdwn === undefined ? {} : { format: mrkdwn === false ? 'plain' : 'markdown' }),
      ...(thread ? { thread: keepText(thread) } : {}),
      ...(Object.keys(options).length === 0 ? {} : { options }),
    },
  }
}

function updateOld(node: SourceNode): MappedMessage {
  const { channelId, text, ts } = node.parameters
  const options = { ...readParts(node), ...keepFields(readOptionFields(node, 'updateFields')) }
  const config = { to: keepText(channelId), message: keepText(ts), text: keepText(text) }
  return {
    config: { operation: 'edit', ...config, ...(Object.keys(options).length === 0 ? {} : { options }) },
  }
}

/** The attachments and the blocks. */
function readParts({ parameters }: SourceNode): Record<string, unknown> {
  if (parameters.jsonParameters === true) {
    const { attachmentsJson = '', blocksJson = '' } = parameters
    return {
      ...(attachmentsJson === '' ? {} : { attachments: readKnownJson(attachmentsJson, 'attachments') }),
      ...(blocksJson === '' ? {} : { blocks: readKnownJson(blocksJson, 'blocks') }),
    }
  }
  if (objectOf(parameters.blocksUi).blocksValues !== undefined)
    throw new Error(
      'its blocks are made of fields of the editor: write them as JSON into the `options` of a CHAT_MESSAGE',
    )
  return { attachments: readAttachments(parameters.attachments ?? []) }
}
