import { isObject } from '../../workflows/json.ts'
import { invalidConfig } from '../nodes/kit/failure.ts'
import {
  type ChatLine,
  type ChatMessage,
  type ChatVendor,
  callByVerb,
  dropEmpty,
  fillForm,
  isGet,
  unreadable,
} from './vendor.ts'

const ID = /^[A-Za-z0-9]{1,64}$/
const isGone = (_: unknown, status: number) => status === 404

/** https://developers.mattermost.com/api-documentation. A post knows no number of the one who sends it. */
export const MATTERMOST: ChatVendor = {
  name: 'Mattermost',
  maxText: 16_383,
  maxCaption: 16_383,
  maxFiles: 10,
  formats: ['markdown'],
  reserved: ['channel_id', 'message', 'file_ids', 'id'],
  knownForMs: 0,
  reads: isGet,
  deeds: {
    async send(message, line) {
      const { to, text, thread, replyTo, options } = message
      const files = await upload(message, line)
      const json = {
        ...options,
        ...dropEmpty({ channel_id: to, message: text ?? '', root_id: thread ?? replyTo }),
        ...(files.length === 0 ? {} : { file_ids: files }),
      }
      return post(line, 'posts', 'POST', json)
    },
    edit: (message, line) =>
      post(line, `posts/${idOf(message)}/patch`, 'PUT', {
        ...message.options,
        ...dropEmpty({ message: message.text }),
      }),
    async delete(message, line) {
      await line.begin()
      const path = `api/v4/posts/${idOf(message)}`
      const { body } = await line.post({ path, verb: 'DELETE' }, undefined, isGone)
      return { messageId: message.message ?? null, to: message.to ?? null, response: body }
    },
    async react(message, line) {
      const post_id = idOf(message)
      const emoji = (message.reaction ?? '').replace(/^:|:$/g, '')
      const { body: me } = await line.post({ path: 'api/v4/users/me', verb: 'GET' })
      const user = Object(me).id
      if (typeof user !== 'string') throw unreadable('Mattermost')
      await line.begin()
      const taken = `api/v4/users/${user}/posts/${post_id}/reactions/${encodeURIComponent(emoji)}`
      const { body } = message.remove
        ? await line.post({ path: taken, verb: 'DELETE' }, undefined, isGone)
        : await line.post(
            { path: 'api/v4/reactions' },
            { json: { user_id: user, post_id, emoji_name: emoji } },
          )
      return { messageId: post_id, to: message.to ?? null, response: body }
    },
    async action({ to, thread, action = 'typing' }, line) {
      if (action !== 'typing') throw invalidConfig('action', 'must be typing for Mattermost')
      await line.begin()
      const json = dropEmpty({ channel_id: to, parent_id: thread })
      const { body } = await line.post({ path: 'api/v4/users/me/typing' }, { json })
      return { messageId: null, to: to ?? null, response: body }
    },
    call: (message, line) => callByVerb('Mattermost', message, line, 'api/v4/'),
  },
}

function idOf({ message = '' }: ChatMessage): string {
  if (!ID.test(message)) throw invalidConfig('message', 'must be the id of a post')
  return message
}

/** Files are uploaded first, and stay invisible until a post names them. */
async function upload({ to, files }: ChatMessage, line: ChatLine): Promise<string[]> {
  if (files.length === 0) return []
  const form = await fillForm({ channel_id: to ?? '' }, files, () => 'files')
  const { body } = await line.post({ path: 'api/v4/files' }, { form })
  const infos: unknown = Object(body).file_infos
  if (!Array.isArray(infos) || infos.length !== files.length) throw unreadable('Mattermost')
  return infos.map((info) => String(Object(info).id))
}

async function post(line: ChatLine, path: string, verb: 'POST' | 'PUT', json: object) {
  await line.begin()
  const { body } = await line.post({ path: `api/v4/${path}`, verb }, { json })
  if (!isObject(body) || typeof body.id !== 'string') throw unreadable('Mattermost')
  const { channel_id: channel } = body
  return { messageId: body.id, to: typeof channel === 'string' ? channel : null, response: body }
}
