/**
 * Keys whose form says whose they are: a line for each form, `vendor pattern`, written from what the vendors document
 * (the rules of gitleaks, MIT, are the anchor for which vendors there are). They are found wherever a run of at least
 * 16 characters begins; the lengths are often the least, as vendors lengthen their keys. Ordered by vendor.
 */
const FORMS = String.raw`
1password A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}
1password-service ops_eyJ[A-Za-z0-9+/_-]{100,}={0,3}
adafruit aio_[A-Za-z0-9]{28}
adobe p8e-[A-Za-z0-9]{32}
age-key AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}
airtable pat[A-Za-z0-9]{14}\.[a-f0-9]{64}
alchemy alcht_[A-Za-z0-9]{30,}
alibaba LTAI[A-Za-z0-9]{12,24}
anthropic sk-ant-(?:api|admin|oat|sid)\d\d-[\w-]{40,}
apify apify_(?:api|proxy)_[A-Za-z0-9]{30,}
apollo-graph (?:user:[\w.-]{3,60}|service:[\w.-]{3,60}):[\w-]{20,30}
artifactory AKCp[A-Za-z0-9]{60,80}
artifactory-reference cmVmdGtu[A-Za-z0-9]{50,70}
asana 2/\d{10,20}/\d{10,20}:[a-f0-9]{32}
atlassian ATATT3xFf[A-Za-z0-9+/=_-]{80,}
atlassian-bitbucket ATBB[A-Za-z0-9_=.-]{24,}
atlassian-connect ATCTT3xFf[A-Za-z0-9+/=_-]{80,}
aws A(?:KIA|SIA|BIA|CCA|3T[A-Z0-9])[A-Z0-9]{16}
aws-bedrock ABSK[A-Za-z0-9+/]{80,}={0,2}
aws-bedrock-short bedrock-api-key-[A-Za-z0-9+/]{40,}={0,2}
beamer b_[a-z0-9=_-]{44}
braintree access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}
braintrust bt-st-[A-Za-z0-9]{40,}
brevo xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}
brevo-smtp xsmtpsib-[a-f0-9]{64}-[A-Za-z0-9]{16}
browserbase bb_(?:live|test)_[\w-]{20,}
buildkite bk(?:ua|pt|ct|aj|pi|rt)_[A-Za-z0-9]{36,}
bunq sandbox_[a-f0-9]{64}
cerebras csk-[a-z0-9]{40,}
circleci CCI(?:PAT|PRJ)_[A-Za-z0-9]{20,24}_[a-f0-9]{40}
clickhouse 4b1d[A-Za-z0-9]{38}
clojars CLOJARS_[a-z0-9]{60}
cloudflare-ca v1\.0-[a-f0-9]{24}-[a-f0-9]{146}
cloudinary cloudinary://\d{10,20}:[\w-]{20,40}(?=@)
contentful CFPAT-[\w-]{43}
crates-io cio[A-Za-z0-9]{32}
databricks dapi[a-f0-9]{32}(?:-\d)?
databricks-oauth dose[a-f0-9]{32}
defined-networking dnkey-[a-z0-9=_-]{26}-[a-z0-9=_-]{52}
digitalocean do[opr]_v1_[a-f0-9]{64}
digitalocean-gradient sk-do-[\w-]{40,}
discord-bot [MNO][A-Za-z\d_-]{22,27}\.[A-Za-z\d_-]{6}\.[A-Za-z\d_-]{27,40}
docker dckr_(?:pat|oat)_[\w-]{27,32}
doppler dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]{2,35}\.)?[A-Za-z0-9]{40,44}
dropbox sl\.(?:u\.)?[A-Za-z0-9=_-]{130,}
duffel duffel_(?:test|live)_[A-Za-z0-9_=-]{43}
dynatrace dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}
easypost EZ[AT]K[A-Za-z0-9]{54}
easyship (?:prod|sand)_[A-Za-z0-9+/]{43}=
elevenlabs sk_[a-f0-9]{48}
endor endr\+[A-Za-z0-9-]{16}
facebook EAA[A-Za-z][A-Za-z0-9]{80,}
figma fig[dopur]_[\w-]{40,}
firecrawl fc-[a-f0-9]{32}
fireworks fw_[A-Za-z0-9]{20,}
flutterwave FLW(?:PUB|SEC)K(?:_TEST)?-[a-h0-9A-H]{12,40}(?:-X)?
fly-io fo1_[\w-]{43}
fly-io-macaroon fm[12][ar]?_[A-Za-z0-9+/]{80,}={0,3}
frameio fio-u-[A-Za-z0-9_=-]{64}
gcp-key AIza[\w-]{35}
gcp-oauth-secret GOCSPX-[\w-]{28}
gcp-oauth-token ya29\.[\w-]{20,}
gcp-refresh-token 1//0[\w-]{30,}
github gh[pousr]_[A-Za-z0-9]{36,255}
github-fine-grained github_pat_[A-Za-z0-9_]{36,255}
gitlab gl(?:pat|cbt|dt|rt|ptt|ft|agent|imt|oas|soat|ffct|wt)-[\w.-]{20,}
gitlab-runner GR1348941[\w-]{20}
gitter gitt_[A-Za-z0-9]{40}
gocardless live_[A-Za-z0-9_=-]{40}
grafana-cloud glc_[A-Za-z0-9+/]{32,400}={0,3}
grafana-key eyJrIjoi[A-Za-z0-9]{60,400}={0,3}
grafana-service glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}
groq gsk_[A-Za-z0-9]{40,}
harness (?:pat|sat)\.[\w-]{22}\.[a-f0-9]{24}\.[A-Za-z0-9]{20}
hashicorp-vault hv[sbr]\.[\w-]{24,300}
helicone (?:sk|pk)-helicone-[a-z0-9-]{25,}
heroku HRKU-[A-Za-z0-9_-]{36,60}
hubspot pat-(?:na|eu|ap)\d-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}
huggingface hf_[A-Za-z0-9]{30,40}
huggingface-organisation api_org_[A-Za-z]{34}
infisical st\.[a-f0-9]{24}\.[a-f0-9]{32}\.[a-f0-9]{32}
infracost ico-[A-Za-z0-9]{32}
intercom dG9rO[A-Za-z0-9+/]{54,60}={0,2}
intra42 s-s4t2(?:ud|af)-[a-f0-9]{64}
jina jina_[a-f0-9]{32}[\w-]{20,}
langfuse (?:sk|pk)-lf-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}
langsmith ls(?:v2_(?:pt|sk)_|__)[a-f0-9]{32}(?:_[a-f0-9]{10})?
launchdarkly (?:sdk|api|mob)-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}
linear lin_(?:api|oauth)_[A-Za-z0-9]{32,}
lob (?:live|test)_(?:pub_)?[a-f0-9]{31,35}
mailgun key-[a-f0-9]{32}
mailgun-public pubkey-[a-f0-9]{32}
mandrill md-[\w-]{22}
mapbox [ps]k\.eyJ[\w-]{40,}\.[\w-]{22}
meilisearch msk_[a-f0-9]{64}
mercadopago APP_USR-\d{13,18}-\d{6}-[a-f0-9]{32}-\d{6,12}
mongodb-atlas mdb_sa_sk_[\w-]{40,}
neon napi_[a-z0-9]{60,}
netlify nf[pcoub]_[A-Za-z0-9]{36,}
newrelic-browser NRJS-[a-f0-9]{19}
newrelic-insert NRI[IQ]-[A-Za-z0-9_-]{32}
newrelic-other NRA[A-Z]-[A-Za-z0-9]{27,}
newrelic-user NRAK-[A-Za-z0-9]{27}
nightfall NF-[A-Za-z0-9]{32}
notion (?:secret|ntn)_[A-Za-z0-9]{40,50}
npm npm_[A-Za-z0-9]{36}
nuget oy2[a-z0-9]{43}
nvidia nvapi-[\w-]{60,70}
octopus API-[A-Z0-9]{26,32}
onesignal os_v2_(?:app|org)_[a-z0-9]{50,}
openai sk-(?:proj|svcacct|admin|None)-[\w-]{20,}
openai-classic sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}
openai-form sk-[A-Za-z0-9]{32,64}
openrouter sk-or-(?:v1-)?[a-f0-9]{40,64}
openshift sha256~[\w-]{43}
paddle pdl_(?:live|sdbx)_apikey_[a-z0-9]{26}_[A-Za-z0-9]{22}_[A-Za-z0-9]{3}
pagerduty u\+[A-Za-z0-9_+-]{18}
perdure sdk_[A-Za-z0-9_-]{16,}
perplexity pplx-[A-Za-z0-9]{40,60}
persona persona_(?:production|sandbox)_[a-f0-9-]{36}
pinecone pcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{50,80}
pinterest pina_[A-Za-z0-9]{32,}
plaid access-(?:sandbox|development|production)-[a-f0-9-]{36}
planetscale pscale_(?:tkn|oauth|pw|api)_[\w=.-]{32,64}
polar polar_(?:oat|pat|at_o|at_u)_[A-Za-z0-9]{30,}
posthog ph[cxs]_[A-Za-z0-9]{40,50}
postman PMAK-[a-f0-9]{24}-[a-f0-9]{34}
prefect pn[ub]_[A-Za-z0-9]{36}
pulumi pul-[a-f0-9]{40}
pypi pypi-AgE[\w-]{50,}
ramp ramp_(?:id|sec)_[A-Za-z0-9]{40,48}
razorpay rzp_(?:live|test)_[A-Za-z0-9]{14}
readme rdme_[a-z0-9]{70}
render rnd_[A-Za-z0-9]{28,40}
replicate r8_[A-Za-z0-9]{37,}
resend re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,30}
riot-games RGAPI-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}
rootly rootly_[a-f0-9]{64}
rubygems rubygems_[a-f0-9]{48}
runpod rpa_[A-Z0-9]{40,48}
salesforce 00D[A-Za-z0-9]{12,15}![A-Za-z0-9._]{80,120}
scaleway SCW[A-Z0-9]{17}
scalingo tk-us-[\w-]{48}
scrapfly scp-(?:live|test)-[a-f0-9]{32}
segment sgp_[A-Za-z0-9]{40,64}
sendgrid SG\.[\w-]{16,32}\.[\w-]{16,64}
sentry-integration sntrya?i?_[a-f0-9]{64}
sentry-organisation sntrys_[A-Za-z0-9+/=_-]{60,}
sentry-user sntryu_[a-f0-9]{64}
settlemint sm_(?:aat|pat|sat)_[A-Za-z0-9]{16,40}
shippo shippo_(?:live|test)_[a-f0-9]{40}
shopify shp(?:at|ca|pa|ss|ua|tka)_[a-fA-F0-9]{32}
slack-app xapp-\d-[A-Z0-9]{8,}-\d{8,}-[a-z0-9]{16,}
slack-bot xox[abeoprs](?:\.xox[bp])?-(?:\d{1,13}-)*[A-Za-z0-9-]{16,}
slack-refresh xoxe-\d-[A-Za-z0-9]{100,}
slack-workflow xwfp-[A-Za-z0-9-]{16,}
snyk snyk_(?:uat|sat)\.[\w.-]{20,}
sonar sq[upa]_[a-f0-9]{40}
sourcegraph sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}
sourcegraph-cody slk_[a-f0-9]{64}
square EAAA[\w-]{60}
square-secret sq0(?:atp|csp|idp)-[\w-]{22,60}
stackhawk hawk\.[\w-]{20}\.[\w-]{20}
statsig secret-[A-Za-z0-9]{40,50}
stripe [sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,255}
stripe-webhook whsec_[A-Za-z0-9+/=]{24,}
supabase sb(?:p|_secret|_publishable)_[A-Za-z0-9_-]{30,64}
svix (?:sk|testsk)_[A-Za-z0-9]{30,}\.(?:eu|us)
tailscale tskey-(?:api|auth|client|scim|webhook)-[A-Za-z0-9]{8,20}-[A-Za-z0-9]{20,40}
tavily tvly-(?:dev-|prod-)?[A-Za-z0-9]{30,}
telegram \d{8,10}:A[A-Za-z0-9_-]{34}
temporal tmprl_[A-Za-z0-9_-]{30,}
tinybird p\.eyJ[\w-]{20,}\.[\w-]{27,}
together tgp_v1_[\w-]{40,}
trigger-dev tr_(?:dev|prod|stg|pat)_[A-Za-z0-9]{20,}
turbopuffer tpuf_[A-Za-z0-9]{30,}
twilio-key SK[a-f0-9]{32}
twitter AAAAAAAAAAAAAAAAAAAAA[A-Za-z0-9%]{50,120}
typeform tfp_[A-Za-z0-9_.=-]{40,}
unkey unkey_[A-Za-z0-9]{20,}
vercel vc[aikprt]_[A-Za-z0-9]{24,}
vercel-blob vercel_blob_rw_[A-Za-z0-9]{16}_[A-Za-z0-9]{30,}
voyage pa-[A-Za-z0-9_-]{43}
weights-and-biases wandb_v1_[\w-]{60,}
xai xai-[A-Za-z0-9]{60,90}
yandex-access YC[A-Za-z0-9_-]{38}
yandex-cloud AQVN[\w-]{35,38}
yandex-oauth y0_[\w-]{50,}
yandex-token t1\.[\w-]{20,}={0,2}\.[\w-]{86}={0,2}
zep z_[A-Za-z0-9]{20,30}\.[A-Za-z0-9_-]{40,}
zuplo zpka_[a-f0-9]{32}_[a-f0-9]{8}
`
/**
 * Forms without a beginning of their own: `vendor mark pattern`. Only a text that has the mark is searched for them.
 */
const MARKED = String.raw`
azure-ad Q~ [\w~.-]{3}\dQ~[\w~.-]{31,34}
azure-devops AZDO [A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}
azure-function AzFu [\w-]{44}AzFu[\w-]{5}={0,2}
azure-openai JQQJ9 [A-Za-z0-9]{52}JQQJ9[9D][A-Za-z0-9]{25}
azure-storage +ASt [A-Za-z0-9+/]{76}\+ASt[A-Za-z0-9+/]{6}==
hashicorp-terraform .atlasv1. [A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}
mailchimp -us [a-f0-9]{32}-us\d{1,2}
maxmind _mmk [A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk
newrelic-licence NRAL [a-f0-9]{36}NRAL
sidekiq .contribsys.com [a-f0-9]{8}:[a-f0-9]{8}(?=@(?:gems|enterprise)\.contribsys\.com)
`
/** Addresses that are a secret themselves: everyone who knows them can post. Only the part after the host is secret. */
const HOOKS = String.raw`
slack-webhook hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/_-]{30,}
discord-webhook discord(?:app)?\.com/api/webhooks/\d{17,20}/[\w-]{60,}
teams-webhook [a-z0-9-]{1,40}\.webhook\.office\.com/webhookb2/[a-f0-9-]{36}@[a-f0-9-]{36}/IncomingWebhook/[a-f0-9]{32}/[a-f0-9-]{36}
telegram-bot api\.telegram\.org/bot\d{6,12}:[\w-]{30,}
zapier-webhook hooks\.zapier\.com/hooks/catch/\d{5,12}/[a-z0-9]{5,12}
make-webhook hook\.(?:eu|us)\d\.make\.com/[a-z0-9]{32}
sentry-dsn [a-f0-9]{32}(?::[a-f0-9]{32})?@[a-z0-9.-]{1,60}sentry\.io/\d{1,20}
`

function readForms(text: string): [vendor: string, source: string][] {
  const lines = text.trim().split('\n')
  return lines.map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)])
}

/** The forms of vendors' keys, as sources of patterns. */
export const VENDOR_FORMS = readForms(FORMS)
/** Forms with the mark that a text has to have. */
export const MARKED_FORMS = readForms(MARKED).map(([vendor, rest]) => {
  const [mark = ''] = rest.split(' ', 1)
  return { vendor, mark, source: rest.slice(mark.length + 1) }
})
export const HOOK_FORMS = readForms(HOOKS)
