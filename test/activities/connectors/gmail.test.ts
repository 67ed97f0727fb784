import { expect, test } from 'vitest'
import { type Asked, type Reply, useVendors } from '../../support/connectors/vendor.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const start = useVendors(host)

const HEADERS = [
  { name: 'From', value: 'Ada <ada@example.com>' },
  { name: 'To', value: 'me@example.com, "Bob, B." <bob@example.com>' },
  { name: 'Subject', value: 'Plan' },
  { name: 'Message-ID', value: '<m1@example.com>' },
]
const mail = (id: string) => ({
  ...{ id, threadId: 't1', snippet: 'so', labelIds: ['INBOX'] },
  payload: { mimeType: 'text/plain', headers: HEADERS },
})

function answer({ method, path, query, json }: Asked): Reply {
  const at = path.replace('/gmail/v1/users/me', '')
  if (at === '/profile') return { json: { emailAddress: 'me@example.com' } }
  if (at === '/labels') return { json: { labels: [{ id: 'INBOX', name: 'Inbox', type: 'system' }] } }
  if (at === '/messages') {
    const next = query.get('pageToken') === null ? { nextPageToken: 'p2' } : {}
    return { json: { messages: next.nextPageToken ? [{ id: 'm1' }, { id: 'm2' }] : [{ id: 'm3' }], ...next } }
  }
  if (at.includes('/attachments/')) return { json: { size: 2, data: Buffer.from('é').toString('base64url') } }
  if (method === 'POST' || method === 'DELETE') return { json: { id: 'sent', threadId: 't1', ...json } }
  return { json: mail(at.split('/')[2]!) }
}

async function startMail(change: (asked: Asked) => Reply = answer) {
  const vendor = await start(change)
  const act = (action: string, input: object, more: Record<string, unknown> = {}) =>
    vendor.act({ connector: 'gmail', action, input }, more)
  const sent = () => {
    const { json } = vendor.asked.find(({ path }) => /\/(send|drafts)$/.test(path))!
    const { raw, threadId } = (json.message ?? json) as { raw: string; threadId?: string }
    return { text: Buffer.from(raw, 'base64url').toString(), threadId }
  }
  return { vendor, act, sent }
}

test('a mail is sent once, with its hidden recipients', async () => {
  const { act, sent, vendor } = await startMail()
  const { output } = await act('sendMessage', {
    ...{ to: 'Ada <ada@example.com>, bob@example.com', bcc: 'eve@example.com', subject: 'Grüße' },
    ...{ html: '<b>x</b>', senderName: 'The shop' },
  })
  expect(output).toMatchObject({ id: 'sent', threadId: 't1' })
  const { text } = sent()
  expect(text).toMatch(/^From: The shop <me@example\.com>/im)
  expect(text).toMatch(/^To: Ada <ada@example\.com>, bob@example\.com/im)
  expect(text).toMatch(/^Bcc: eve@example\.com/im)
  expect(text).toMatch(/^Subject: =\?UTF-8\?/im)
  expect(text).toContain('<b>x</b>')
  expect(vendor.asked.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'GET /gmail/v1/users/me/profile',
    'POST /gmail/v1/users/me/messages/send',
  ])
  expect((await act('sendMessage', { to: 'nobody', subject: 'x' })).error).toMatch(/^to: /)
})

test('a mail whose answer is lost is not sent again', async () => {
  const { act, vendor } = await startMail((asked) => (asked.method === 'POST' ? 'cut' : answer(asked)))
  const { status, error } = await act('sendMessage', { to: 'a@example.com', subject: 's', text: 't' })
  expect(status).toBe('FAILED')
  expect(error).toMatch(/no answer came that says so/)
  expect(vendor.asked).toHaveLength(1)
})

test('a reply goes into the thread, to all or to the sender alone', async () => {
  const all = await startMail()
  await all.act('replyMessage', { message: 'm1', text: 'yes', all: true })
  const { text, threadId } = all.sent()
  expect(threadId).toBe('t1')
  expect(text).toMatch(/^To: Ada <ada@example\.com>, "Bob, B\." <bob@example\.com>/im)
  expect(text).toMatch(/^In-Reply-To: <m1@example\.com>/im)
  expect(text).toMatch(/^References: <m1@example\.com>/im)
  expect(text).toMatch(/^Subject: Re: Plan/im)
  expect(text).not.toMatch(/^From:/im)
  const one = await startMail()
  await one.act('replyMessage', { message: 'm1', text: 'yes' })
  expect(one.sent().text).toMatch(/^To: Ada <ada@example\.com>\r?$/im)
})

test('mails are found page by page, with their headers and labels', async () => {
  const { act, vendor } = await startMail()
  const { output } = await act('searchMessages', { query: 'is:unread', labels: ['INBOX'], limit: 3 })
  expect(output.value.map(({ id }: { id: string }) => id)).toEqual(['m1', 'm2', 'm3'])
  expect(output.value[0]).toEqual({
    ...{ id: 'm1', threadId: 't1', snippet: 'so', payload: { mimeType: 'text/plain' } },
    ...{ labels: [{ id: 'INBOX', name: 'Inbox' }], From: 'Ada <ada@example.com>', Subject: 'Plan' },
    ...{ To: HEADERS[1]!.value, 'Message-ID': '<m1@example.com>' },
  })
  expect(vendor.asked[0]!.query.get('q')).toBe('is:unread')
  expect(vendor.asked[2]!.query.getAll('metadataHeaders')).toEqual(['From', 'To', 'Cc', 'Bcc', 'Subject'])
  const full = await act('getMessage', { message: 'm1', format: 'full' })
  expect(full.output).toEqual(mail('m1'))
})

test('labels, drafts and attachments', async () => {
  const { act, sent, vendor } = await startMail()
  await act('addLabels', { message: 'm1', labels: ['L1'] })
  expect(vendor.asked[0]).toMatchObject({
    ...{ method: 'POST', path: '/gmail/v1/users/me/messages/m1/modify', json: { addLabelIds: ['L1'] } },
  })
  await act('markRead', { message: 'm1' })
  expect(vendor.asked[1]!.json).toEqual({ removeLabelIds: ['UNREAD'] })
  await act('createDraft', { to: 'a@example.com', subject: 'later', text: 't' })
  expect(sent().text).toMatch(/^Subject: later/im)
  const { output } = await act('getAttachment', {
    message: 'm1',
    attachment: 'a1',
    name: 'e.txt',
    mimeType: 'text/plain',
  })
  expect(output.file).toMatchObject({ name: 'e.txt', mimeType: 'text/plain', bytes: 2 })
  expect((await act('deleteMessage', { message: 'm1' })).output).toEqual({ id: 'm1' })
  expect((await act('listLabels', {})).output.value).toHaveLength(1)
})
