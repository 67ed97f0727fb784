/**
 * What words do in an attack, whatever its wording: whoever takes over a model overrides orders, asks it to say what it
 * keeps, or speaks as somebody else. Harmless texts use the same words, but seldom these together.
 */
const CLASSES: Record<string, string> = {
  override: `ignore ignores ignoring ignored disregard disregarding disregarded forget forgot forgotten override
    overrides overriding overrule bypass bypassing circumvent skip skipping neglect overlook discard dismiss abandon
    erase erased suspend suspended disable disabled deactivate drop scrap cancel void nullify supersede supersedes
    replace overwrite violate break breaking escape unlearn reset wipe clear delete outdated obsolete invalid ignoriere
    ignorier vergiss missachte überschreibe umgehe ignorez oublie oubliez ignora olvida olvide omite dimentica ignori
    esqueça esquece ignorar negeer vergeet zignoruj zapomnij pomiń игнорируй игнорируйте забудь забудьте проігноруй
    забудьте 忽略 忘记 无视 不理 無視 忘れ 무시 잊어 تجاهل انس अनदेखा unut yoksay bỏ abaikan lupakan glöm ignorer unohda ignorați
    αγνόησε התעלם שכח ignoruj zapomeň vergesst vergessen ignorieren umgehen hebe annuliere laisse tomber annule
    contourne olvídate olvidá deja abandona anula sáltate lascia perdere annulla ignorare deixe largue anule vergeten
    negeren laat zapomnijcie pomijaj zignorować отбрось отмени отменены забыть сняты обойди скасуй 忘掉 作废 取消 跳过 抛开 绕过
    取り消 破棄 无效 무효 잊고 취소 ألغ تجاوز भूल भूलकर unutun bırak quên lờ hủy lewati batalkan hiraukan strunta bortse glem sett
    sieh ξέχνα παράκαμψε ลืม puuta pamijaj puoliväli opomíň felejtsd hagyd`,
  past: `previous previously prior above preceding earlier before former formerly original originally initial initially
    first foregoing past beginning start top opening precede vorherigen vorherige bisherigen obigen oben précédentes
    précédents dessus anteriores arriba anterior precedenti sopra acima vorige eerdere poprzednie wcześniejsze
    предыдущие выше прежние попередні 之前 上面 以上 前面 以前 上記 이전 위의 السابقة أعلاه पिछले önceki yukarıdaki trước sebelumnya
    tidigare tidligere aiemmat anterioare προηγούμενες הקודמות předchozí vorigen früheren vorher davor zuvor bisher
    obige précédent précédente avant antes previas previos inicial iniciales precedente prima iniziali anteriormente
    voorgaande hiervoor daarvoor boven powyższe powyżej wcześniej przed wyżej раньше сначала начале вышеприведённые
    прежде раніше вище 最初 最开始 开头 一开始 先前 冒頭 初期 최초 처음 앞의 أول قبل ऊपर पहले başta baştaki ilk đầu trên awal atas sebelum
    ovan innan ovenfor yllä ennen πάνω πριν למעלה לפני výše předtím fenti előző ก่อนหน้า`,
  orders: `instruction instructions rule rules rulebook direction directions command commands guideline guidelines
    prompt prompts order orders directive directives constraint constraints restriction restrictions policy policies
    safeguard safeguards limitation limitations programming filter filters ethics moderation guardrail guardrails
    protocol protocols training morals boundaries anweisungen anweisung regeln richtlinien instructions consignes
    règles instrucciones reglas órdenes istruzioni regole instruções regras instructies regels polecenia zasady
    instrukcje инструкции правила указания інструкції 指令 指示 规则 規則 提示 지시 규칙 التعليمات القواعد निर्देशों talimatları
    kurallar hướng instruksi aturan instruktioner ohjeet instrucțiunile οδηγίες ההוראות pokyny utasítást einweisung
    vorgaben vorgabe vorschriften befehle befehl auftrag verbote beschränkungen grenzen systemprompt règlement ordres
    ordre limites interdits normas indicaciones límites restricciones limitaciones instrucción ordini regola limiti
    restrizioni divieti instrução ordens restrições regra opdracht opdrachten beperkingen ograniczeń ograniczenia
    reguły instrukcji poleceń poleceniach zasadach запреты ограничений ограничения инструкцию инструкций правил приказ
    приказы команды правилами обмежень 规定 设定 限制 要求 命令 提示词 設定 制限 ルール 명령 설정 제한 قواعد أوامر تعليماتك القيود नियमों निर्देश
    नियम kurallarını kuralların talimatlarını komut yönerge tắc dẫn perintah instruksimu regler reglerna
    instruktionerna instruks ohjeesi säännöt κανόνες κανόνων הוראות כללים הכללים pravidla pokynů szabály szabályokat
    utasításaidat utasítások คำสั่ง กฎ`,
  inner: `system developer hidden internal confidential secret pre initialization initialisation configuration config
    setup settings context memory systemprompt sysprompt système sistema systeem systemowy системный 系统 システム 시스템`,
  reveal: `reveal reveals show display disclose recite share expose dump leak list spell whisper divulge unveil uncover
    quote paste transcribe summarise summarize paraphrase translate encode convert export describe recall remind
    confess zeige zeig verrate nenne sag wiederhole affiche révèle donne répète montre muestra revela dime repite di
    mostra rivela stampa ripeti diga mostre revele repita toon geef vertel herhaal pokaż podaj ujawnij powtórz покажи
    раскрой скажи повтори выведи назови покажи 显示 告诉 输出 说出 重复 透露 教え 表示 繰り 출력 알려 반복 보여 أخبرني اعرض كرر बताओ दिखाओ söyle
    göster yaz nói beri tunjukkan visa vis kerro spuneți πες תגיד řekni mondd verrat verraten gib ausgeben schreib
    schreibe aufschreiben buchstabiere erzähl erzähle wiederholen übersetze enthülle sage nenn kopiere dis raconte
    recopie montrez affichez épelle traduis résume dévoile répétez dímela dímelo cuéntame enséñame enseña muéstrame
    copia deletrea escríbeme dimmi fammi vedere dammi mostrami raccontami scandisci traduci elenca conte dê soletre
    traduza zeg schrijf kopieer powiedz wypisz przepisz zdradź pokażcie literuj przetłumacz расскажи выведите покажите
    перепиши произнеси напечатай процитируй переведи дай скинь розкажи покажіть виведи 写出 念 发给 给我 复述 打印 列出 翻译 说 讲 言って
    書いて 書き 出力 見せ 答え 말해 말하 알려줘 보여줘 써 줘 적어 قل أظهر اكتب أعطني बोलो लिखो सुनाओ göstersin anlat yazdır tekrarla viết đọc kể
    hiển katakan tuliskan sebutkan ulangi säg berätta skriv fortæl näytä sano tavaa δείξε γράψε επανάλαβε הצג כתוב חזור
    ukaž napiš prozraď mutasd írd บอก แสดง พิมพ์ niambie sabihin`,
  say: `say says saying output outputs print prints respond responds reply replies answer answers write type return
    returns repeat echo state utter speak tell give antworte schreibe réponds dis écris responde escribe rispondi
    scrivi responda antwoord odpowiedz napisz ответь напиши 回答 答え 대답 sagen schreibt antworten dites écrivez répondez
    contesta contestá scrivete rispondete diga escreva zeggen schrijf antwoordt odpowiadaj mów скажите напишите отвечай
    говори 只说 说 回复 言う 返事 말하고 대답해 أجب رد उत्तर cevapla yanıtla trả lời jawab svara svar vastaa απάντησε ענה odpověz
    válaszolj ตอบ`,
  secret: `password passwords passphrase passcode pin credential credentials token keyword secrets passwort kennwort
    passe contraseña clave senha wachtwoord hasło пароль 密码 密碼 パスワード 비밀번호 المرور पासवर्ड şifreyi şifre khẩu sandi
    lösenordet salasana parola κωδικό הסיסמה heslo jelszót pw pwd passwd geheimwort geheimnis geheime geheimen codewort
    losung zugangscode kennung schlüssel secrète clé clef secreto secreta secretos palabra llave segreto segreta chiave
    segredo chave geheim sekret hasła hasłem tajne tajny секрет секретное секретный кодовое тайну тайное пароля паролем
    ключ 口令 秘密 暗号 密钥 合言葉 秘密の 암호 비밀 سر السر رمز الرمز गुप्त sırrı sakladığın kelimeyi bí mật rahasia lösenord hemliga
    hemligheten adgangskode passord salainen salasanan μυστικό מפתח סיסמה tajné jelszó titkos titkot รหัสผ่าน ลับ
    nenosiri`,
  code: `code codes key keys word words phrase answer flag combination`,
  you: `you your yours yourself u ur du dein deine deiner dich tu ton ta tes vos votre tú tus tuo tuoi seu sua suas je
    jouw twój twoje twoich твой твои свои ты 你 您 你的 あなた 당신 sen senin dir deinem deinen vous toi contigo usted vosotros
    voi você vocês lhe jou jullie tobie ciebie swoje swój вы вас тебе тебя твоего ваш 您的 你们 きみ 너 너의 너에게 네 أنت तुम
    तुम्हें आप तेरा sana seni bạn kamu anda din sinä sinun εσύ σου אתה שלך tvé neked คุณ`,
  me: `me i my mine us we our im i'm ich mir mein moi mon yo mi io мне я 我 私 나 mich unser notre mí conmigo noi nosso
    mij mnie nam нам меня 我们 私に 나를 저 لي हमें मुझे bana beni tôi aku mig minulle μου לי mně nekem ฉัน`,
  boss: `admin administrator developer developers owner creator creators root engineer engineers boss maker openai
    anthropic google microsoft auditor maintainer maintainers supervisor manager sysadmin author ceo administrateur
    administrador amministratore администратор administratorin entwickler entwicklerin besitzer eigentümer ersteller
    créateur développeur propriétaire programador creador dueño jefe desarrollador creatore capo sviluppatore
    proprietario criador desenvolvedor chefe dono beheerder baas eigenaar twórca właściciel szef programista создатель
    разработчик хозяин начальник админ адміністратор розробник 管理员 开发者 主人 老板 管理者 開発者 관리자 개발자 주인 المدير المطور प्रबंधक
    yönetici yöneticiyim geliştirici quản trị administratör utvecklare ylläpitäjä διαχειριστής מנהל správce vývojář
    rendszergazda ผู้ดูแล`,
  mode: `mode jailbreak jailbroken dan unrestricted unfiltered uncensored unlimited unleashed limitless amoral
    unethical freed modus mód режим 模式 modo entwicklermodus entwickler-modus développeur desarrollador sviluppatore
    desenvolvedor ontwikkelaarsmodus trybie tryb режиме 开发者模式 开发者 モード 모드 وضع मोड modunda chế độ`,
  now: `now instead henceforth new onwards immediately next afterwards subsequently anymore longer jetzt maintenant ahora
    adesso agora nu teraz теперь 现在 今`,
  act: `act acting pretend roleplay simulate simulation imagine become behave persona character impersonate play role
    alter hypothetical hypothetically fiction fictional emulate stell spiel spiele fais semblant joue comporte actúa
    finge imagina haz compórtate fai finta immagina comportati finja aja alsof speel udawaj wyobraź представь
    притворись веди сыграй вообрази уяви 假装 想象 扮演 假设 ふり 想像 척하고 상상 تظاهر تخيل मान davran hayal giả vờ anggap bayangkan
    låtsas latsaa teskentele προσποιήσου העמד předstírej tettesd สมมติ`,
  machine: `ai assistant bot model models llm llms chatbot agent agents gpt chatgpt copilot machine language gemini claude
    summariser summarizer reviewer assistent intelligenz ki ia 人工智能 ロボット`,
  not: `not never no none don't dont cannot can't won't without nothing stop refuse refuses refusing kein keine nicht
    sans pas sin nunca senza não niet bez не без 不 没有 ohne niemals keinerlei aucune aucun jamais ninguna ninguno ningún
    nessuna nessun nenhuma nenhum geen zonder żadnych żadne никаких никогда нет 没 任何 别 ない なし 없는 않는 बिना değil olmadan
    không tanpa utan inga ilman χωρίς בלי žádné nincs ไม่มี`,
  only: `only just exactly simply solely merely verbatim nur seulement solo sólo soltanto apenas tylko только 只 だけ`,
  all: `all any every everything entire whole full complete anything each alle alles toutes tous tout todas todos todo
    tutte tutto alle wszystkie все всё 所有 全部 すべて 모든 جميع सभी tüm mọi semua alla kaikki toate όλες כל všechny összes`,
  access: `access granted approved authorized authorised verified permitted permission unlock unlocked unlocks denied
    login authenticated clearance accepted valid enter entry zugang erlaubt accès accordé acceso concedido gewährt
    zugriff freigegeben autorisé autorisée permitido autorizado autorizada consentito autorizzato permesso liberado
    verleend toegang toegestaan dostęp przyznany dozwolony доступ разрешён разрешен открыт надано 允许 访问 通过 许可 アクセス 許可
    허용 접근 승인 مسموح الوصول अनुमति erişim onaylandı izin quyền akses diberikan tillträde beviljat adgang innvilget
    myönnetty pääsy εγκρίθηκε אושר גישה přístup povolen hozzáférés engedélyezve`,
  send: `send forward upload post email visit click fetch transfer transmit submit execute run call install download
    subscribe buy insert append include add embed`,
  link: `http https url www link curl href img src webhook`,
  user: `user users human reader customer recipient candidate applicant`,
  text: `text sentence sentences message messages conversation chat line lines paragraph document page mail string
    content contents summary summarisation session reply response`,
  urge: `please urgent urgently emergency beg must need immediately hurry life die fired important attention`,
  learn: `how what why explain difference mean means example examples article discuss define who when where which should
    wie was warum comment pourquoi cómo qué come como jak как что почему 怎样 什么 如何 为什么`,
  mention: `detect prevent attack attacks attacker attackers injection phrase article paper security scanner policy user's
    called named titled term meaning`,
}

const classesOf = new Map<string, number[]>()
for (const [number, words] of Object.values(CLASSES).entries()) {
  for (const word of new Set(words.split(/\s+/))) {
    const classes = classesOf.get(word)
    if (classes) classes.push(number)
    else classesOf.set(word, [number])
  }
}
const NONE: readonly number[] = []

/** The numbers of the classes of a word in lower case; of most words there are none. */
export function listClasses(word: string): readonly number[] {
  return classesOf.get(word) ?? NONE
}
