import { type Fields, objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { sentFilesOf } from '../nodes/fileparts.ts'
import type { MappedNode } from '../parts.ts'
import { reportMissingOption } from '../report.ts'
import { readOptionFields, reportAttribution } from '../send/messenger.ts'
import { isTemplate, keepText, keepTexts, listObjects, writeCode } from '../texts.ts'
import { demandOperation, readMost } from './action.ts'
import { type GoogleAction, mapGoogle } from './google.ts'

/** Google's mail. */
export function mapGmail(node: SourceNode, tools: MapperTools): MappedNode {
  const { parameters, version } = node
  if (version < 2)
    throw new Error(
      'it is of version 1, whose parameters are others: let n8n bring it to version 2, and import it again',
    )
  const { resource = 'message' } = parameters
  const usual: Record<string, string> = { message: 'send', draft: 'create', label: 'getAll' }
  const operation = parameters.operation ?? usual[String(resource)]
  if (operation === 'sendAndWait')
    throw new Error('it sends a mail and waits for the answer: use a CONNECTOR and an APPROVAL')
  const read = demandOperation(OPERATIONS, 'Gmail', { resource, operation })
  return mapGoogle(node, tools, { connector: 'gmail', oauth: 'gmailOAuth2' }, read(node, tools))
}

type Reader = (node: SourceNode, tools: MapperTools) => GoogleAction

const idOf = ({ parameters }: SourceNode) => ({ message: keepText(parameters.messageId) })
const SUCCESS = '{"success": true}'

const OPERATIONS: Record<string, Reader> = {
  'message.send': send,
  'message.reply': reply,
  'message.get': (node) => ({ action: 'getMessage', input: { ...idOf(node), ...demandSimple(node) } }),
  'message.getAll': search,
  'message.delete': (node) => ({ action: 'deleteMessage', input: idOf(node), shape: SUCCESS }),
  'message.markAsRead': (node) => ({ action: 'markRead', input: idOf(node) }),
  'message.markAsUnread': (node) => ({ action: 'markUnread', input: idOf(node) }),
  'message.addLabels': (node) => ({
    action: 'addLabels',
    input: { ...idOf(node), labels: readLabels(node) },
  }),
  'message.removeLabels': (node) => ({
    action: 'removeLabels',
    input: { ...idOf(node), labels: readLabels(node) },
  }),
  'draft.create': createDraft,
  'label.create': ({ parameters }) => {
    if (Object.keys(objectOf(parameters.options)).length > 0)
      throw new Error('it says where the label is shown: use an HTTP_REQUEST with the credential of Gmail')
    return { action: 'createLabel', input: { name: keepText(parameters.name) } }
  },
  'label.getAll': ({ parameters }) => {
    if (isTemplate(parameters.returnAll)) throw new Error('an expression says whether it reads all')
    if (parameters.returnAll === true) return { action: 'listLabels', input: {} }
    const limit = parameters.limit ?? 50
    if (typeof limit !== 'number') throw new Error('an expression says how many it reads')
    return { action: 'listLabels', input: {}, shape: `$index < ${limit} ? $item : []` }
  },
}

function readLabels({ parameters }: SourceNode): unknown {
  const { labelIds } = parameters
  if (Array.isArray(labelIds)) return keepTexts(labelIds)
  if (isTemplate(labelIds))
    return `={{ (given => Array.isArray(given) ? given : [given])(${writeCode(labelIds)}) }}`
  return labelIds === undefined || labelIds === '' ? '' : [keepText(labelIds)]
}

/** Whole mails are read apart by n8n, with their attachments. */
function demandSimple({ parameters }: SourceNode): Fields {
  if (parameters.simple ?? true) {
    if (isTemplate(parameters.simple)) throw new Error('an expression says whether it reads whole mails')
    return {}
  }
  throw new Error(
    'it reads whole mails, with their attachments ("Simplify" is off): use a CONNECTOR of gmail with getMessage in the ' +
      'format full, and getAttachment',
  )
}

function readContent(node: SourceNode, { report }: MapperTools, options: Fields, known: string[]): Fields {
  const { parameters } = node
  const { attachmentsUi, ccList, bccList, replyTo, ...rest } = options
  for (const [key, value] of Object.entries(rest))
    if (!known.includes(key) && value !== '' && value !== false)
      reportMissingOption(report, `parameters.options.${key}`, value)
  const { emailType = 'html', message = '' } = parameters
  if (isTemplate(emailType)) throw new Error('an expression says whether it is HTML')
  const lists = listObjects(objectOf(attachmentsUi).attachmentsBinary).map(({ property }) => ({
    names: property,
  }))
  const text = isTemplate(message)
    ? `={{ String(${writeCode(message)} ?? '').trim() }}`
    : keepText(message).trim()
  const mail = {
    [emailType === 'html' ? 'html' : 'text']: text === '' ? '={{ "" }}' : text,
    ...(ccList ? { cc: keepText(ccList) } : {}),
    ...(bccList ? { bcc: keepText(bccList) } : {}),
    ...(replyTo ? { replyTo: keepText(replyTo) } : {}),
  }
  return lists.length === 0 ? mail : { ...mail, attachments: sentFilesOf(lists) }
}

function reportLine(node: SourceNode, tools: MapperTools, options: Fields): void {
  if (options.appendAttribution ?? node.version >= 2.1)
    reportAttribution(tools, 'parameters.options.appendAttribution')
}

function send(node: SourceNode, tools: MapperTools): GoogleAction {
  const { senderName, ...options } = readOptionFields(node, 'options')
  reportLine(node, tools, options)
  return {
    action: 'sendMessage',
    input: {
      to: keepText(node.parameters.sendTo),
      subject: keepText(node.parameters.subject) || '={{ "" }}',
      ...readContent(node, tools, options, ['appendAttribution']),
      ...(senderName ? { senderName: keepText(senderName) } : {}),
    },
  }
}

function reply(node: SourceNode, tools: MapperTools): GoogleAction {
  const {
    replyToSenderOnly = false,
    senderName,
    replyToRecipientsOnly,
    ...options
  } = readOptionFields(node, 'options')
  if (senderName)
    throw new Error('it names its sender in a reply: use a CONNECTOR of gmail with replyMessage')
  if (
    [replyToSenderOnly, replyToRecipientsOnly].some((one) => isTemplate(one)) ||
    replyToRecipientsOnly === true
  )
    throw new Error(
      'it says in its own way to whom the reply goes: use a CONNECTOR of gmail with replyMessage',
    )
  const message =
    'Perdure answers to the address that the mail names for replies, to all who got it with those who got a copy, and ' +
    'puts Re: before the subject. n8n takes the subject as it is, and leaves out those who got a copy.'
  tools.report('parameter', 'parameters.operation', message, 'reply')
  return {
    action: 'replyMessage',
    input: {
      ...idOf(node),
      ...readContent(node, tools, options, ['appendAttribution']),
      all: replyToSenderOnly !== true,
    },
  }
}

function createDraft(node: SourceNode, tools: MapperTools): GoogleAction {
  const { sendTo, fromAlias, threadId, ...options } = readOptionFields(node, 'options')
  if (threadId)
    throw new Error('it puts the draft into a thread: answer by a CONNECTOR of gmail with replyMessage')
  const emailType = node.parameters.emailType ?? 'text'
  const own = { ...node, parameters: { ...node.parameters, emailType } }
  return {
    action: 'createDraft',
    input: {
      subject: keepText(node.parameters.subject) || '={{ "" }}',
      ...readContent(own, tools, options, []),
      ...(sendTo ? { to: keepText(sendTo) } : {}),
      ...(fromAlias ? { from: keepText(fromAlias) } : {}),
    },
  }
}

function search(node: SourceNode): GoogleAction {
  const {
    q,
    labelIds,
    sender,
    readStatus,
    receivedAfter,
    receivedBefore,
    includeSpamTrash,
    includeDrafts,
    ...rest
  } = readOptionFields(node, 'filters')
  if (receivedAfter || receivedBefore)
    throw new Error(
      'it names dates, which n8n turns into seconds: write them into the search, as in after:1735689600',
    )
  if (includeDrafts !== undefined || Object.keys(rest).length > 0 || isTemplate(readStatus))
    throw new Error('it searches by something else than the words of a search: use a CONNECTOR of gmail')
  const parts = [
    ...(q ? [`String(${writeCode(q)} ?? '')`] : []),
    ...(sender ? [`'from:' + ${writeCode(sender)}`] : []),
    ...(readStatus && readStatus !== 'both' ? [JSON.stringify(`is:${readStatus}`)] : []),
  ]
  return {
    action: 'searchMessages',
    input: {
      ...(parts.length > 0 ? { query: `={{ [${parts.join(', ')}].filter(part => part).join(' ') }}` } : {}),
      ...(labelIds ? { labels: readLabels({ ...node, parameters: { labelIds } }) } : {}),
      ...(includeSpamTrash ? { includeSpamTrash } : {}),
      ...demandSimple(node),
      ...readMost(node, { limit: 50 }),
    },
  }
}
